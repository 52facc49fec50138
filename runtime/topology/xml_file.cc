#include "runtime/topology/xml_file.h"

#include <algorithm>
#include <charconv>

#include "runtime/topology/check.h"

namespace bitrail::topology {
namespace {

constexpr size_t kMaxElements = 200'000;
constexpr int kMaxDepth = 100;

int line_at(const std::string& text, ptrdiff_t offset) {
  const auto end = std::clamp<ptrdiff_t>(offset, 0, static_cast<ptrdiff_t>(text.size()));
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + end, '\n'));
}

// Depth and number of elements, without recursion; document types that define something.
Status check_shape(const XmlFile& file) {
  size_t elements = 0;
  int depth = 0;
  pugi::xml_node node = file.document.first_child();
  while (node) {
    if (node.type() == pugi::node_doctype &&
        std::string_view(node.value()).find('[') != std::string_view::npos)
      return failure(BITRAIL_ERR_CONFIG,
                     "{}:{}: defines entities or elements (<!DOCTYPE ... [): "
                     "no topology needs that",
                     file.name, line_of(file, node));
    if (++elements > kMaxElements)
      return failure(BITRAIL_ERR_CONFIG, "{}:{}: more than {} elements", file.name,
                     line_of(file, node), kMaxElements);
    if (node.first_child()) {
      node = node.first_child();
      if (++depth > kMaxDepth)
        return failure(BITRAIL_ERR_CONFIG, "{}:{}: elements nested more than {} deep", file.name,
                       line_of(file, node), kMaxDepth);
      continue;
    }
    while (node && !node.next_sibling()) {
      node = node.parent();
      depth--;
    }
    node = node.next_sibling();
  }
  return {};
}

Status bad(const XmlFile& file, pugi::xml_node node, const char* attribute,
           const std::string& why) {
  return failure(BITRAIL_ERR_CONFIG, "{}: {}=\"{}\" {}", where(file, node), attribute,
                 std::string_view(node.attribute(attribute).value()).substr(0, 64), why);
}

}  // namespace

Status parse_xml(std::string name, std::string text, XmlFile* file) {
  file->name = std::move(name);
  file->text = std::move(text);
  if (file->text.size() > kMaxFile)
    return failure(BITRAIL_ERR_CONFIG, "{}: larger than {} MiB", file->name, kMaxFile >> 20);
  if (const size_t zero = file->text.find('\0'); zero != std::string::npos)
    return failure(BITRAIL_ERR_CONFIG, "{}:{}: a zero byte", file->name,
                   line_at(file->text, static_cast<ptrdiff_t>(zero)));
  const pugi::xml_parse_result result =
      file->document.load_buffer(file->text.data(), file->text.size(),
                                 pugi::parse_default | pugi::parse_doctype, pugi::encoding_utf8);
  if (!result)
    return failure(BITRAIL_ERR_CONFIG, "{}:{}: {}", file->name, line_at(file->text, result.offset),
                   result.description());
  if (!file->document.document_element())
    return failure(BITRAIL_ERR_CONFIG, "{}: no element in it", file->name);
  BITRAIL_TRY(check_shape(*file));
  for (pugi::xml_node node : file->document.children())
    if (node.type() == pugi::node_element && node != file->document.document_element())
      return failure(BITRAIL_ERR_CONFIG, "{}:{}: a second <{}> beside <{}>", file->name,
                     line_of(*file, node), node.name(), file->document.document_element().name());
  return {};
}

int line_of(const XmlFile& file, pugi::xml_node node) {
  return line_at(file.text, node.offset_debug());
}

std::string where(const XmlFile& file, pugi::xml_node node) {
  for (const char* key : {"busid", "numaid", "dev", "name", "target", "pci_busid", "type"})
    if (const pugi::xml_attribute attribute = node.attribute(key))
      return fmt::format("{}:{}: <{} {}=\"{}\">", file.name, line_of(file, node), node.name(), key,
                         std::string_view(attribute.value()).substr(0, 64));
  return fmt::format("{}:{}: <{}>", file.name, line_of(file, node),
                     std::string_view(node.name()).substr(0, 64));
}

Status whole_number(const XmlFile& file, pugi::xml_node node, const char* attribute, int64_t low,
                    int64_t high, int64_t standard, int64_t* value) {
  const std::string_view text = node.attribute(attribute).value();
  *value = standard;
  if (text.empty()) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error != std::errc() || end != text.data() + text.size() || *value < low || *value > high)
    return bad(file, node, attribute, fmt::format("is no whole number from {} to {}", low, high));
  return {};
}

Status any_number(const XmlFile& file, pugi::xml_node node, const char* attribute,
                  uint64_t* value) {
  std::string_view text = node.attribute(attribute).value();
  *value = 0;
  if (text.empty()) return {};
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *value, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size())
    return bad(file, node, attribute, "is no number");
  return {};
}

Status plain_text(const XmlFile& file, pugi::xml_node node, const char* attribute,
                  std::string* value) {
  *value = node.attribute(attribute).value();
  if (!printable(*value))
    return failure(BITRAIL_ERR_CONFIG, "{}:{}: {} of <{}> is too long or has control characters",
                   file.name, line_of(file, node), attribute, node.name());
  return {};
}

Status required(const XmlFile& file, pugi::xml_node node, const char* attribute,
                std::string* value) {
  BITRAIL_TRY(plain_text(file, node, attribute, value));
  if (value->empty())
    return failure(BITRAIL_ERR_CONFIG, "{}: has no {}", where(file, node), attribute);
  return {};
}

}  // namespace bitrail::topology
