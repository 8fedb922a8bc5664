#include <algorithm>
#include <cstdio>
#include <limits>

#include "parsimony/configs/errors.h"
#include "parsimony/configs/fields.h"

namespace parsimony {
namespace {

using Names = std::string_view[];

constexpr Names kOptimizers = {"sgd", "adam", "adamw", "muon"};
constexpr Names kRateSchedules = {"constant", "cosine", "step", "one_cycle"};
constexpr Names kPrecisions = {"fp32", "bf16", "fp16"};
constexpr Names kMemoryFormats = {"auto", "contiguous", "channels_last"};
constexpr Names kPruningSchedules = {"one_shot", "linear", "agp", "lottery", "annealing"};

constexpr Interval kFromOne{.lowest = 1};
constexpr Interval kFactor{.lowest = 0, .highest = 1, .with_lowest = false};

using T = TrainSettings;
constexpr Field<T> kTrain[] = {
    {"epochs", &T::epochs, kNotNegative,
     "Epochs after the last cut; without `prune`, all of them."},
    {"batch", &T::batch, kFromOne, "Samples per step of the optimizer."},
    {"optimizer",
     word<&T::optimizer>(kOptimizers),
     {},
     "Optimizer; sgd with momentum, adam, adamw, whose weight decay is apart from the gradient, or "
     "muon (Jordan et al. 2024), with steps relative to the weights: lr 0.002 to 0.005 for "
     "fine-tuning."},
    {"lr", &T::lr, kPositive, "Learning rate; the highest, where a schedule varies it."},
    {"momentum", &T::momentum, kShare, "Momentum of sgd and muon."},
    {"weight_decay", &T::weight_decay, kNotNegative,
     "Share of every weight that each step adds to its gradient; adamw takes it from the weight."},
    {"schedule",
     word<&T::schedule>(kRateSchedules),
     {},
     "How the learning rate goes on after the last cut. constant; cosine: to 0 along half a "
     "cosine; "
     "step: times step_factor every step_epochs; one_cycle: up from lr/25 in the first 30 % of the "
     "steps, then down to lr/250000. Epochs before the last cut have the constant rate."},
    {"step_epochs", &T::step_epochs, kFromOne, "Schedule step: epochs between two changes."},
    {"step_factor", &T::step_factor, kFactor, "Schedule step: what the rate is multiplied by."},
    {"label_smoothing", &T::label_smoothing, kShare, "Share of the loss that all classes get."},
    {"flip", &T::flip, {}, "Mirrors every other image."},
    {"crop", &T::crop, kNotNegative,
     "Pixels of padding around an image before it is cut to its size at a random place."},
    {"cutout", &T::cutout, kNotNegative,
     "Side of the square of an image that is blanked, at a random place."},
    {"normalise",
     &T::normalise,
     {},
     "Inputs of mean 0 and deviation 1 per channel, as measured on the training part; else of 0 to "
     "1."},
    {"mean",
     &T::mean,
     {},
     "Taken from the inputs of 0 to 1, per channel; with std, in place of normalise."},
    {"std", &T::deviation, kPositive,
     "Standard deviation per channel, by which values are then divided."},
    {"evaluate_every", &T::evaluate_every, kNotNegative,
     "Epochs between two looks at the test set; 0: after the last only."},
    {"early_stop", &T::early_stop, kNotNegative,
     "Stops after so many epochs without a better test accuracy; 0: never. Needs evaluate_every "
     "1."},
    {"batch_norm",
     &T::batch_norm,
     {},
     "A BatchNorm behind every convolution of an ONNX file while it is trained; where it has a "
     "bias "
     "and no BatchNorm yet. Folded into the convolution in the file that is written."},
    {"distill", &T::distill, kShare,
     "Weight of a teacher's outputs in the loss; of what `--teacher` names, or of the dense "
     "network as it was before its first cut."},
    {"temperature", &T::temperature, kPositive,
     "Temperature of the teacher's answers; the higher, the softer."},
    {"precision",
     word<&T::precision>(kPrecisions),
     {},
     "Numbers of the forward pass. bf16 and fp16 by autocast; fp16 needs CUDA and has a gradient "
     "scaler."},
    {"memory_format",
     word<&T::memory_format>(kMemoryFormats),
     {},
     "Order of an image's numbers in memory. auto: channels_last, on CUDA in half precision only."},
    {"loss",
     &T::loss,
     {},
     "Loss between outputs and targets; as --loss of finetune. Empty: cross_entropy. Labelled data "
     "take cross_entropy, whose option :ignore=255 names labels that do not count; others need "
     "arrays: finetune --calibration."},
    {"seed", &T::seed, kNotNegative,
     "Seed of the initial weights, the order of the samples and the augmentation."}};

/// The fields of a recipe's `prune`, and of a config list's `schedule`.
template <typename S>
constexpr std::array<Field<S>, 4> kCuts = {
    {{"warmup_epochs", &S::warmup_epochs, kNotNegative,
      "Epochs of the dense network before the first cut."},
     {"schedule",
      word<&S::schedule>(kPruningSchedules),
      {},
      "one_shot: one cut. linear, agp, lottery: `steps` cuts; after the t-th of n the sparsity is "
      "s "
      "t/n, s (1 - (1 - t/n)^3) by Zhu and Gupta, To prune, or not to prune, 2017, or 1 - (1 - "
      "s)^(t/n) by Frankle and Carbin, The Lottery Ticket Hypothesis, 2019, where what is left "
      "returns to earlier weights. annealing: one cut, whose ratios per group are searched by "
      "simulated annealing, as in AutoCompress (Liu et al. 2020)."},
     {"steps", &S::steps, kFromOne, "Schedules linear, agp and lottery: in how many cuts."},
     {"epochs_between", &S::epochs_between, kNotNegative,
      "Schedules linear, agp and lottery: epochs after every cut but the last."}}};

using P = PruneSettings;
constexpr Field<P> kPrune[] = {
    kCuts<P>[0],
    kCuts<P>[1],
    kCuts<P>[2],
    kCuts<P>[3],
    {
      "rewind_epoch", &P::rewind_epoch, kNotNegative,
          "Schedule lottery: after every cut, what is left returns to the weights it had behind "
          "this "
          "epoch of the warm-up; 0: to the first ones."
    },
    {
      "search_steps", &P::search_steps, kFromOne, "Schedule annealing: candidates that are tried."
    },
    {
      "search_samples", &P::search_samples, kFromOne,
          "Schedule annealing: training samples that score a candidate by their loss."
    }};

constexpr Field<PenaltySettings> kPenalty[] = {
    {"slimming", &PenaltySettings::slimming, kNotNegative,
     "Factor of the sum of |gamma| over all BatchNorms whose channels may go (Liu et al., Network "
     "Slimming, 2017). Prune by criterion bn_scale then."},
    {"group", &PenaltySettings::group, kNotNegative,
     "Factor of the sum of s/2 times the squared norm of a channel in all its members, s from 1 "
     "for "
     "the strongest channel of a group to 16 for the weakest (Fang et al., DepGraph, 2023). Prune "
     "by criterion group_norm then."}};

// Every member needs a row, or it would be missing in the identity of a run.
static_assert(member_count<TrainSettings>() == std::size(kTrain));
static_assert(member_count<PenaltySettings>() == std::size(kPenalty));
static_assert(member_count<PruneSettings>() == std::size(kPrune) + 3);  // penalty, config, text
static_assert(member_count<ScheduleSetting>() == kCuts<ScheduleSetting>.size());

}  // namespace

std::span<const Field<TrainSettings>> train_fields() { return kTrain; }
std::span<const Field<PruneSettings>> prune_fields() { return kPrune; }
std::span<const Field<PenaltySettings>> penalty_fields() { return kPenalty; }
std::span<const Field<ScheduleSetting>> schedule_fields() { return kCuts<ScheduleSetting>; }

std::string option_of(std::string_view key) {
  std::string name = "--" + std::string(key);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string text_or_number(const JsonReader& value) {
  return value.is_number() ? value.json() : value.text();
}

std::string percentage(long double percent, const std::function<bool(std::string_view)>& means) {
  char text[48];
  for (int digits = 6; digits <= std::numeric_limits<long double>::max_digits10; ++digits) {
    std::snprintf(text, sizeof text, "%.*Lg%%", digits, percent);
    if (means(text)) break;
  }
  return text;
}

std::string share_fault(std::string_view text, const Interval& interval) {
  const std::optional<double> share = share_of(text);
  if (share && interval.contains(*share)) return {};
  return "found \"" + std::string(text) + "\", expected a share in " + interval.text() +
         ", as 0.5 or 50%";
}

size_t word_in(std::span<const std::string_view> words, std::string_view text,
               std::string_view place) {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) throw errors::unknown_word(place, text, words);
  return static_cast<size_t>(found - words.begin());
}

PruningSchedule parse_pruning_schedule(std::string_view text, std::string_view place) {
  return static_cast<PruningSchedule>(word_in(kPruningSchedules, text, place));
}

OptimizerKind parse_optimizer(std::string_view text, std::string_view place) {
  return static_cast<OptimizerKind>(word_in(kOptimizers, text, place));
}

}  // namespace parsimony
