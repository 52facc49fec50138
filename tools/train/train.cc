#include "tools/train/train.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "tools/train/trainer.h"

namespace bitrail::train {
namespace {

constexpr const char* kDescription =
    "Trains a BERT-style encoder on text (masked language modelling), data parallel over all "
    "ranks. Start several ranks with `bitrail launch -n 4 -- bitrail train ...` or mpirun.";

void AddModelOptions(CLI::App* app, TrainOptions* o) {
  Shape* shape = &o->shape;
  app->add_option("--layers", shape->layers, "encoder layers")->capture_default_str();
  app->add_option("--width", shape->width, "features a token")->capture_default_str();
  app->add_option("--heads", shape->heads, "attention heads a layer")->capture_default_str();
  app->add_option("--seq", shape->sequence, "tokens a row (of 512 positions)")
      ->capture_default_str();
  app->add_option("--batch", shape->batch, "rows a rank and step")->capture_default_str();
  app->add_option("--corpus", o->corpus, "text file [WordNet's glosses]");
}

void AddOptimizerOptions(CLI::App* app, TrainOptions* o) {
  app->add_option_function<std::string>(
         "--optimizer",
         [o](const std::string& name) {
           o->optimizer = name == "adam" ? OptimizerKind::adam : OptimizerKind::onebit_adam;
         },
         "[adam]")
      ->check(CLI::IsMember({"adam", "onebit-adam"}));
  app->add_option("--freeze-step", o->freeze_step,
                  "full-precision steps of onebit-adam [15 % of --steps]");
  app->add_option_function<std::string>(
         "--scale",
         [o](const std::string& name) {
           o->scale = name == "block" ? BITRAIL_SCALE_BLOCK : BITRAIL_SCALE_SEGMENT;
         },
         "scales of the 1-bit exchange [segment]")
      ->check(CLI::IsMember({"segment", "block"}));
  app->add_option("--lr", o->lr, "learning rate")->capture_default_str();
  app->add_option("--lr-warmup", o->lr_warmup, "steps of linear rise to --lr")
      ->capture_default_str();
  app->add_flag("--lr-decay,!--no-lr-decay", o->lr_decay, "linear fall to 0 from there [on]");
  app->add_option("--beta1", o->beta1, "decay of the momentum")->capture_default_str();
  app->add_option("--beta2", o->beta2,
                  "decay of the variance; no bias correction, so --freeze-step >= 3 / (1 - beta2)")
      ->capture_default_str();
  app->add_option("--eps", o->eps, "added to the root of the variance")->capture_default_str();
  app->add_option("--weight-decay", o->weight_decay, "of matrices and embeddings, decoupled")
      ->capture_default_str();
  app->add_flag("--mask,!--no-mask", o->mask,
                "zero the exchanged momentum of parameters that never get a gradient [on]; "
                "without, the last line shows where 1-bit Adam throws them");
}

void AddRunOptions(CLI::App* app, TrainOptions* o) {
  app->add_option("--steps", o->steps, "training steps")->capture_default_str();
  app->add_option("--seed", o->seed, "of start values and batches")->capture_default_str();
  app->add_option("--eval", o->eval_batches, "held-out batches a rank after the last step")
      ->capture_default_str();
  app->add_option(
      "--json", o->json,
      "file for one JSON object a step, then one {\"summary\": ...}; times are rank 0's, "
      "comm_ms is exchange plus parameter update, wire_bytes what rank 0 sent for them");
}

int Run(const TrainOptions& options) {
  Summary summary;
  const Status status = Train(options, &summary);
  if (status.ok()) return 0;
  fmt::print(stderr, "bitrail train: {}\n", status.text());
  return summary.interrupted ? 130 : 1;
}

}  // namespace

void AddTrainCommand(CLI::App& app, int* exit_code) {
  CLI::App* train = app.add_subcommand("train", kDescription);
  const auto options = std::make_shared<TrainOptions>();
  AddModelOptions(train, options.get());
  AddOptimizerOptions(train, options.get());
  AddRunOptions(train, options.get());
  train->callback([options, exit_code] { *exit_code = Run(*options); });
}

}  // namespace bitrail::train
