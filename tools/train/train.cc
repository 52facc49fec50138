#include "tools/train/train.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "tools/train/deepspeed_config.h"
#include "tools/train/trainer.h"

namespace bitrail::train {
namespace {

constexpr const char* kDescription =
    "Trains a BERT-style encoder on text (masked language modelling), data parallel over all "
    "ranks. Start several ranks with `bitrail launch -n 4 -- bitrail train ...` or mpirun.";
constexpr const char* kOptimizers =
    "adam, onebit-adam, zero-one-adam, lamb, onebit-lamb or naive-onebit (negative control: Adam "
    "fed with 1-bit gradients)";

// What the callback of an option refused.
void Refuse(const Status& status) {
  if (!status.ok()) throw CLI::ValidationError(status.text());
}

OptimizerKind Optimizer(const std::string& name) {
  OptimizerKind kind = OptimizerKind::adam;
  if (!FindOptimizer(name, &kind))
    throw CLI::ValidationError(
        fmt::format("{}: there is no such optimizer; take {}", name, kOptimizers));
  return kind;
}

void AddModelOptions(CLI::App* app, TrainOptions* o) {
  Shape* shape = &o->shape;
  app->add_option("--layers", shape->layers, "encoder layers")->capture_default_str();
  app->add_option("--width", shape->width, "features a token")->capture_default_str();
  app->add_option("--heads", shape->heads, "attention heads a layer")->capture_default_str();
  app->add_option("--seq", shape->sequence, "tokens a row (of 512 positions)")
      ->capture_default_str();
  app->add_option("--batch", o->batch.micro, "rows a rank and micro-batch")->capture_default_str();
  app->add_option("--accumulation", o->batch.accumulation,
                  "micro-batches whose gradients make one step")
      ->capture_default_str();
  app->add_option("--corpus", o->corpus, "text file [WordNet's glosses]");
}

void AddOptimizerOptions(CLI::App* app, TrainOptions* o) {
  app->add_option_function<std::string>(
      "--optimizer", [o](const std::string& name) { o->optimizer = Optimizer(name); },
      std::string(kOptimizers) + " [adam]");
  app->add_option_function<std::string>(
      "--freeze-step", [o](const std::string& text) { Refuse(ParseFreeze(text, &o->freeze)); },
      "when 1-bit optimizers stop updating the variance: a number of steps, a share of them (15%), "
      "or auto: when it has settled [15%]");
  app->add_flag("--init-call,!--no-init-call", o->init_call,
                "count as DeepSpeed does: freeze step N is N - 1 steps in full precision [off; on "
                "with --deepspeed-config]");
  app->add_option_function<std::string>(
         "--scale",
         [o](const std::string& name) {
           o->scale = name == "block" ? BITRAIL_SCALE_BLOCK : BITRAIL_SCALE_SEGMENT;
         },
         "scales of the 1-bit exchange [segment]")
      ->check(CLI::IsMember({"segment", "block"}));
  app->add_option_function<std::string>(
         "--layout",
         [o](const std::string& name) {
           o->layout = name == "tensor"  ? BITRAIL_LAYOUT_PER_TENSOR
                       : name == "group" ? BITRAIL_LAYOUT_PER_GROUP
                       : name == "fused" ? BITRAIL_LAYOUT_FUSED
                                         : BITRAIL_LAYOUT_DEFAULT;
         },
         "what shares a scale: tensor, group (decayed or not), fused; default: fused for "
         "onebit-lamb, else tensor [default]")
      ->check(CLI::IsMember({"default", "tensor", "group", "fused"}));
  app->add_option_function<std::string>(
         "--padding",
         [o](const std::string& name) {
           o->padding = name == "tight" ? BITRAIL_PADDING_TIGHT : BITRAIL_PADDING_DEEPSPEED;
         },
         "of what shares a scale, deepspeed or tight [deepspeed]")
      ->check(CLI::IsMember({"deepspeed", "tight"}));
  app->add_option_function<std::vector<std::string>>(
         "--compat",
         [o](const std::vector<std::string>& names) {
           o->compat = 0;
           for (const std::string& name : names) Refuse(ParseCompat(name, &o->compat));
         },
         "DeepSpeed's faults to imitate, separated by commas (docs/optimizers.md), or deepspeed: "
         "all")
      ->delimiter(',');
  app->add_option("--lr", o->lr, "learning rate of the Adams")->capture_default_str();
  app->add_option("--lamb-lr", o->lamb_lr, "learning rate of lamb and onebit-lamb")
      ->capture_default_str();
  app->add_option("--lr-warmup", o->lr_warmup, "steps of linear rise to the learning rate")
      ->capture_default_str();
  app->add_flag("--lr-decay,!--no-lr-decay", o->lr_decay, "linear fall to 0 from there [on]");
  app->add_option("--beta1", o->beta1, "decay of the momentum")->capture_default_str();
  app->add_option("--beta2", o->beta2,
                  "decay of the variance; no bias correction, so --freeze-step >= 3 / (1 - beta2)")
      ->capture_default_str();
  app->add_option("--eps", o->eps, "added to the root of the variance")->capture_default_str();
  app->add_option("--weight-decay", o->weight_decay, "of matrices and embeddings, decoupled")
      ->capture_default_str();
  app->add_option("--clip", o->clip, "largest norm of the gradient; 0: none")
      ->capture_default_str();
  app->add_flag("--mask,!--no-mask", o->mask,
                "zero the exchanged momentum of parameters that never get a gradient [on]; "
                "without, the last line shows where 1-bit Adam throws them");
}

void AddFamilyOptions(CLI::App* app, TrainOptions* o) {
  app->add_option("--var-update-scaler", o->var_update_scaler,
                  "zero-one-adam: variance updates before the gap between them doubles")
      ->capture_default_str();
  app->add_option("--local-step-scaler", o->local_step_scaler,
                  "zero-one-adam: frozen steps before the interval of local steps doubles")
      ->capture_default_str();
  app->add_option("--local-step-clipper", o->local_step_clipper,
                  "zero-one-adam: longest interval of local steps")
      ->capture_default_str();
  app->add_option("--max-coeff", o->max_coeff, "lamb: largest |x| / |update|")
      ->capture_default_str();
  app->add_option("--min-coeff", o->min_coeff, "lamb: smallest |x| / |update|")
      ->capture_default_str();
  app->add_option("--coeff-beta", o->coeff_beta, "onebit-lamb: decay of that ratio's average")
      ->capture_default_str();
  app->add_option("--factor-max", o->factor_max, "onebit-lamb: largest correction when frozen")
      ->capture_default_str();
  app->add_option("--factor-min", o->factor_min, "onebit-lamb: smallest correction when frozen")
      ->capture_default_str();
  app->add_option("--factor-threshold", o->factor_threshold,
                  "onebit-lamb: largest change of the correction in a step")
      ->capture_default_str();
}

void AddPrecisionOptions(CLI::App* app, TrainOptions* o) {
  app->add_option_function<std::string>(
         "--precision",
         [o](const std::string& name) {
           o->precision = name == "fp16"   ? Precision::fp16
                          : name == "bf16" ? Precision::bf16
                                           : Precision::fp32;
         },
         "of stored parameters and exchanged gradients: fp32, fp16 or bf16; masters and computing "
         "are float32 [fp32]")
      ->check(CLI::IsMember({"fp32", "fp16", "bf16"}));
  app->add_option("--loss-scale", o->loss_scale.fixed, "of fp16; 0: found while training")
      ->capture_default_str();
  app->add_option("--initial-scale-power", o->loss_scale.initial_power,
                  "it starts at 2 to the power of this")
      ->capture_default_str();
  app->add_option("--loss-scale-window", o->loss_scale.window,
                  "steps without overflow before it doubles")
      ->capture_default_str();
  app->add_option("--hysteresis", o->loss_scale.hysteresis, "overflows before it halves")
      ->capture_default_str();
  app->add_option("--min-loss-scale", o->loss_scale.minimum, "it stays at least this")
      ->capture_default_str();
}

void AddConfigOptions(CLI::App* app, TrainOptions* o) {
  app->add_option("--deepspeed-config", o->deepspeed_config,
                  "DeepSpeed's JSON file; other options on the line win over it");
  app->add_option("--scale-schedule", o->schedule_scale,
                  "multiplies what that file counts in steps (freeze_step, var_freeze_step, "
                  "local_step_scaler, warmup_num_steps, total_num_steps), for runs with fewer "
                  "--steps than it was written for")
      ->check(CLI::Range(1e-9, 1e9))
      ->capture_default_str();
}

void AddRunOptions(CLI::App* app, TrainOptions* o) {
  app->add_option("--steps", o->steps, "training steps")->capture_default_str();
  app->add_option("--seed", o->seed, "of start values and batches")->capture_default_str();
  app->add_option("--seeds", o->seeds, "runs with this many seeds, from --seed on")
      ->capture_default_str();
  app->add_option_function<std::vector<std::string>>(
         "--compare",
         [o](const std::vector<std::string>& names) {
           o->compare.clear();
           for (const std::string& name : names) o->compare.push_back(Optimizer(name));
         },
         "optimizers, separated by commas: runs each with the same seeds and data, then one table "
         "and the losses as a picture")
      ->delimiter(',');
  app->add_option("--plot", o->plot, "SVG file for the picture of the losses");
  app->add_option("--save", o->save,
                  "folder for checkpoints, each in place of the last: after --every steps, at the "
                  "end and when interrupted");
  app->add_option("--every", o->save_every, "steps between checkpoints; 0: at the end only")
      ->capture_default_str();
  app->add_option("--resume", o->resume,
                  "folder of a checkpoint to go on from, up to --steps in all; same --seed, same "
                  "data");
  app->add_option_function<std::string>(
         "--errors", [o](const std::string& name) { o->reset_errors = name == "reset"; },
         "error feedback of a resumed run: exact, as saved, or reset, to zero [exact]")
      ->check(CLI::IsMember({"exact", "reset"}));
  app->add_option("--eval", o->eval_batches, "held-out batches a rank after the last step")
      ->capture_default_str();
  app->add_option("--print-every", o->print_every, "steps between lines; 0: twenty lines a run")
      ->capture_default_str();
  app->add_option(
      "--json", o->json,
      "file for one JSON object a step, then one {\"summary\": ...}; times are rank 0's, "
      "comm_ms is exchange plus parameter update, wire_bytes what rank 0 sent for them");
}

bool Given(const CLI::App& app, const char* option) { return app.get_option(option)->count() > 0; }

// The file first, then again what the line says.
Status ReadConfig(CLI::App* app, TrainOptions* o) {
  TrainOptions file;
  file.deepspeed_config = o->deepspeed_config;
  file.schedule_scale = o->schedule_scale;
  BITRAIL_TRY(ReadDeepSpeedConfig(o->deepspeed_config, &file));
  const BatchSizes sizes = file.batch;
  *o = file;
  for (CLI::Option* option : app->get_options())
    if (option->count() > 0) option->run_callback();
  if (Given(*app, "--batch") || Given(*app, "--accumulation")) {
    o->batch.train = 0;
    if (sizes.train > 0)
      o->notes.push_back(
          fmt::format("train_batch_size {} is not followed: --batch and --accumulation are given",
                      sizes.train));
  }
  if (Given(*app, "--lr-warmup") || Given(*app, "--lr-decay")) o->warmup.reset();
  // The schedule keeps its shape and gets another height.
  if (o->warmup && Given(*app, "--lr")) {
    const double factor = o->warmup->max_lr > 0 ? o->lr / o->warmup->max_lr : 1;
    o->warmup->min_lr *= factor;
    o->warmup->max_lr = o->lr;
  }
  return {};
}

int Run(CLI::App* app, TrainOptions* options) {
  bool interrupted = false;
  Status status;
  if (!options->deepspeed_config.empty()) status = ReadConfig(app, options);
  if (status.ok()) status = Train(*options, &interrupted);
  if (status.ok()) return 0;
  fmt::print(stderr, "bitrail train: {}\n", status.text());
  return interrupted ? 130 : 1;
}

}  // namespace

void AddTrainCommand(CLI::App& app, int* exit_code) {
  CLI::App* train = app.add_subcommand("train", kDescription);
  const auto options = std::make_shared<TrainOptions>();
  AddModelOptions(train, options.get());
  AddOptimizerOptions(train, options.get());
  AddFamilyOptions(train, options.get());
  AddPrecisionOptions(train, options.get());
  AddConfigOptions(train, options.get());
  AddRunOptions(train, options.get());
  train->callback([train, options, exit_code] { *exit_code = Run(train, options.get()); });
}

}  // namespace bitrail::train
