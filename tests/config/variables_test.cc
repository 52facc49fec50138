#include "runtime/config/variables.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>

#include "runtime/config/file.h"
#include "runtime/config/nearest.h"

namespace bitrail::config {
namespace {

// Sets variables for one test and takes them away again.
class Environment {
 public:
  ~Environment() {
    for (const std::string& name : names_) unsetenv(name.c_str());
  }
  void set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    names_.insert(name);
  }

 private:
  std::set<std::string> names_;
};

std::string write_file(const std::string& text) {
  std::string path = testing::TempDir() + "bitrail_config_test.conf";
  std::ofstream(path) << text;
  return path;
}

Status apply_one(const std::string& name, const std::string& value, Settings* settings) {
  return apply({{name, value, "a test", Origin::environment}}, settings, nullptr);
}

TEST(Variables, NamesAreDistinctDescribedAndPrefixed) {
  std::set<std::string_view> names;
  for (const Variable& variable : kVariables) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    EXPECT_TRUE(variable.name.starts_with("BITRAIL_")) << variable.name;
    EXPECT_FALSE(variable.meaning.empty()) << variable.name;
  }
}

TEST(Variables, DefaultsAreUsable) {
  Settings settings;
  const Status status = apply({}, &settings, nullptr);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(settings.debug, "WARN");
  EXPECT_EQ(settings.transport, "auto");
  EXPECT_EQ(settings.timeout_ms, 30'000);
  EXPECT_EQ(settings.rank, -1);
}

TEST(Variables, GoodValuesArriveInTheirMembers) {
  Settings settings;
  ASSERT_TRUE(apply_one("BITRAIL_TIMEOUT_MS", "5000", &settings).ok());
  EXPECT_EQ(settings.timeout_ms, 5000);
  ASSERT_TRUE(apply_one("BITRAIL_PIECE", "256K", &settings).ok());
  EXPECT_EQ(settings.piece, 256 * 1024);
  ASSERT_TRUE(apply_one("BITRAIL_LINK_MBPS", "1.5e2", &settings).ok());
  EXPECT_EQ(settings.link_mbps, 150);
  ASSERT_TRUE(apply_one("BITRAIL_DEBUG", "trace", &settings).ok());
  EXPECT_EQ(settings.debug, "TRACE");
  ASSERT_TRUE(apply_one("BITRAIL_SECRET", "a b=c", &settings).ok());
  EXPECT_EQ(settings.secret, "a b=c");
}

TEST(Variables, BadValuesAreRefusedNamingVariableValueAndWhatIsAllowed) {
  struct Case {
    const char *name, *value, *allowed;
  };
  for (const Case& c : {
           Case{"BITRAIL_TIMEOUT_MS", "0", "from 1 to 86400000"},
           Case{"BITRAIL_TIMEOUT_MS", "-5", "from 1 to 86400000"},
           Case{"BITRAIL_TIMEOUT_MS", "1s", "an integer"},
           Case{"BITRAIL_TIMEOUT_MS", " 5", "an integer"},
           Case{"BITRAIL_TIMEOUT_MS", "99999999999999999999", "an integer"},
           Case{"BITRAIL_TIMEOUT_MS", "9007199254740993G", "an integer"},
           Case{"BITRAIL_TIMEOUT_MS", "K", "an integer"},
           Case{"BITRAIL_RANK", "65536", "65535"},
           Case{"BITRAIL_LINK_MBPS", "fast", "a number"},
           Case{"BITRAIL_LINK_MBPS", "nan", "a number"},
           Case{"BITRAIL_LINK_MBPS", "inf", "a number"},
           Case{"BITRAIL_LINK_US", "-1", "a number"},
           Case{"BITRAIL_DEBUG", "LOUD", "NONE|WARN|INFO|TRACE"},
           Case{"BITRAIL_TRANSPORT", "uc", "auto|ucx|verbs"},
       }) {
    Settings settings;
    const Status status = apply_one(c.name, c.value, &settings);
    EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG) << c.name << "=" << c.value;
    for (const char* part : {c.name, c.value, c.allowed}) {
      EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
    }
  }
}

TEST(Variables, EmptyMeansNotSet) {
  Settings settings;
  ASSERT_TRUE(apply_one("BITRAIL_TIMEOUT_MS", "", &settings).ok());
  EXPECT_EQ(settings.timeout_ms, 30'000);
}

TEST(Variables, EnvironmentWinsOverFile) {
  Environment environment;
  environment.set(
      "BITRAIL_CONFIG",
      write_file("# comment\n\n BITRAIL_TIMEOUT_MS = 7000 \r\nBITRAIL_JOB_ID=from file\n"
                 "BITRAIL_LINK_US=3"));
  environment.set("BITRAIL_TIMEOUT_MS", "8000");
  environment.set("BITRAIL_SECRET", "hush");
  Settings settings;
  const Status status = load(&settings);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(settings.timeout_ms, 8000);
  EXPECT_EQ(settings.job_id, "from file");
  EXPECT_EQ(settings.link_us, 3);

  std::vector<Value> values;
  ASSERT_TRUE(describe(&values).ok());
  ASSERT_EQ(values.size(), kVariables.size());
  for (const Value& value : values) {
    if (value.name == "BITRAIL_TIMEOUT_MS") {
      EXPECT_EQ(value.text, "8000");
      EXPECT_EQ(value.origin, Origin::environment);
    } else if (value.name == "BITRAIL_JOB_ID") {
      EXPECT_EQ(value.origin, Origin::file);
    } else if (value.name == "BITRAIL_TRANSPORT") {
      EXPECT_EQ(value.origin, Origin::standard);
      EXPECT_EQ(value.type, "choice");
    } else if (value.name == "BITRAIL_SECRET") {
      EXPECT_EQ(value.text.find("hush"), std::string::npos) << "the secret is not shown";
    }
  }
}

TEST(File, HoldsNcclsNamesForOthers) {
  std::vector<Assignment> assignments, unknown;
  ASSERT_TRUE(parse_file("NCCL_DEBUG=INFO\nBITRAIL_TIMEOUT_MS=7000\n", "f", &assignments).ok());
  ASSERT_EQ(assignments.size(), 2U);
  EXPECT_EQ(assignments[0].name, "NCCL_DEBUG");
  Settings settings;
  ASSERT_TRUE(apply(assignments, &settings, &unknown).ok());
  EXPECT_EQ(settings.timeout_ms, 7000);
  EXPECT_TRUE(unknown.empty());
}

TEST(File, ProblemsNameFileAndLine) {
  struct Case {
    const char *text, *expected;
  };
  for (const Case& c : {
           Case{"BITRAIL_DEBUG=INFO\nhello\n", "f:2"},
           Case{"PATH=/bin\n", "f:1"},
           Case{"\n\nBITRAIL_CONFIG=other\n", "f:3"},
           Case{"=5\n", "f:1"},
       }) {
    std::vector<Assignment> assignments;
    const Status status = parse_file(c.text, "f", &assignments);
    EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG) << c.text;
    EXPECT_NE(status.text().find(c.expected), std::string::npos) << status.text();
  }
  Environment environment;
  environment.set("BITRAIL_CONFIG", write_file("BITRAIL_DEBUG=INFO\nBITRAIL_TIMEOUT_MS=soon\n"));
  Settings settings;
  const Status status = load(&settings);
  EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG);
  EXPECT_NE(status.text().find(".conf:2"), std::string::npos) << status.text();
}

TEST(File, MissingOrUnreadableIsSaid) {
  std::vector<Assignment> assignments;
  const Status missing = read_file("/nowhere/bitrail.conf", &assignments);
  EXPECT_EQ(missing.code(), BITRAIL_ERR_CONFIG);
  EXPECT_NE(missing.text().find("/nowhere/bitrail.conf"), std::string::npos);
  EXPECT_EQ(read_file("/", &assignments).code(), BITRAIL_ERR_CONFIG);
  const std::string large = write_file(std::string((1 << 20) + 1, '#'));
  EXPECT_EQ(read_file(large, &assignments).code(), BITRAIL_ERR_CONFIG);
}

TEST(Nearest, MistypedNamesFindTheirVariable) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("same", "same"), 0);
  EXPECT_EQ(nearest("BITRAIL_TIMEOUT"), "BITRAIL_TIMEOUT_MS");
  EXPECT_EQ(nearest("BITRAIL_LINK_MBS"), "BITRAIL_LINK_MBPS");
  EXPECT_EQ(nearest("BITRAIL_DEBUGG"), "BITRAIL_DEBUG");
}

TEST(Load, UnknownNamesWarnOnceWithTheNearest) {
  Environment environment;
  environment.set("BITRAIL_TIMEOUT", "5");
  Settings settings;
  testing::internal::CaptureStderr();
  ASSERT_TRUE(load(&settings).ok());
  const std::string first = testing::internal::GetCapturedStderr();
  EXPECT_NE(first.find("BITRAIL_TIMEOUT in the environment"), std::string::npos) << first;
  EXPECT_NE(first.find("did you mean BITRAIL_TIMEOUT_MS?"), std::string::npos) << first;
  testing::internal::CaptureStderr();
  ASSERT_TRUE(load(&settings).ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace bitrail::config
