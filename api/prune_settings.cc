#include "parsimony/api/prune_settings.h"

#include <algorithm>

#include "parsimony/api/depth.h"
#include "parsimony/base/parse.h"
#include "parsimony/base/ranges.h"
#include "parsimony/base/words.h"
#include "parsimony/configs/recipe.h"
#include "parsimony/data/dataset.h"
#include "parsimony/engines/errors.h"
#include "parsimony/pruners/criterion.h"

namespace parsimony {
namespace {

constexpr const char* kInterfaceGroup = "Inputs and outputs that may shrink";
constexpr const char* kDataGroup = "Calibration data";
constexpr const char* kRecoveryGroup = "Recovery after pruning";
constexpr const char* kEngineGroup = "Engine";
constexpr const char* kLatencyGroup = "With a budget of milliseconds";

constexpr Interval kFromOne{.lowest = 1};

std::string all_of(const std::vector<std::string>& names) { return listed(names, names.size()); }

using S = Shorthand;
constexpr Field<S> kShorthand[] = {
    {.key = "ratio",
     .member = &S::ratio,
     .interval = kBelowOne,
     .meaning = "Fraction of the budget to remove, 0 <= RATIO < 1: 0.5 or 50%",
     .value = "RATIO",
     .as_share = true},
    {.key = "criterion",
     .member = &S::criterion,
     .meaning = "Criterion that scores channels or elements: {} (l1); with numbers: 2:4, "
                "sparsegpt:2:4, block:4x1. Of several, as obs,fisher, the one with the smallest "
                "output error, which requires --calibration",
     .value = "NAME",
     .names = [] { return all_of(criterion_names()); }},
    {"op_types",
     &S::op_types,
     {},
     "Prune only layers of these types: Conv,Gemm or Conv2d,Linear",
     "TYPE",
     {},
     ','},
    {"exclude",
     &S::exclude,
     {},
     "Names or patterns ('*.mlp.*') of layers that are not pruned, up to the next option",
     "NAME"},
    {"scope",
     &S::scope,
     {},
     "Where channels compete for removal: within each layer (local, the default), across all "
     "layers (global), across layers of isomorphic sub-graphs (isomorphic), or across all layers "
     "by their effect on the outputs (outputs). Of several, as local,global, the one with the "
     "smallest output error, which requires --calibration",
     "SCOPE"},
    {"budget",
     &S::budget,
     {},
     "Quantity that --ratio is a share of: channels (the default), params, macs or weights. "
     "Without --ratio, the amount that may remain: params=1.5M, macs=2e9, macs=40%, latency_ms=5",
     "WHAT"},
    {.key = "round_to",
     .member = TextMember<S>{[](const S& settings) {
                               return settings.round_to_target ? "auto"
                                                               : std::to_string(settings.round_to);
                             },
                             [](S& settings, const std::string& text, std::string_view) {
                               settings.round_to_target = text == "auto";
                               settings.round_to = number_of<int>(text).value_or(1);
                             }},
     .meaning = "Round the number of kept channels to a multiple of K; auto: to the multiple that "
                "suits the hardware, see --target",
     .value = "K",
     .fault =
         [](const std::string& text) {
           return text == "auto" || number_of<int>(text)
                      ? std::string()
                      : "found \"" + text + "\", expected a whole number or auto";
         }},
    {"target",
     &S::target,
     {},
     "With --round-to auto, the hardware that the network will run on: x86-avx2, x86-avx512, "
     "arm-neon, cuda-tensorcore or generic (this processor)",
     "NAME"},
    {"force", &S::force, {}, "Allow less than a thousandth of the network to remain"}};

constexpr std::string_view kConstantsWords[] = {"drop", "exact"};
constexpr std::string_view kFailureWords[] = {"refuse", "exclude"};

template <Mixing kMixing>
constexpr FlagMember<PruneRequest> mixing(std::string_view excludes) {
  return {[](const PruneRequest& request) { return request.mixing == kMixing; },
          [](PruneRequest& request) { request.mixing = kMixing; }, excludes};
}

std::string text_of(const DepthRequest& depth) {
  if (depth.kind == DepthRequest::Kind::kAuto) return "auto";
  if (depth.kind == DepthRequest::Kind::kCount) return std::to_string(depth.count);
  return percentage(100 * static_cast<long double>(depth.share),
                    [&](std::string_view text) { return share_of(text) == depth.share; });
}

using P = PruneRequest;
constexpr Field<P> kCut[] = {
    {.key = "granularity",
     .member =
         TextMember<P>{[](const P& request) { return std::string(name_of(request.granularity)); },
                       [](P& request, const std::string& text, std::string_view place) {
                         request.granularity = parse_granularity(text, place);
                       }},
     .meaning = "Unit of removal: channel, head, head_dim, group or expert",
     .value = "WHAT"},
    {"exact_only",
     mixing<Mixing::kExact>("allow_mixing"),
     {},
     "Do not prune groups whose removal changes the remaining values (LayerNorm, softmax)"},
    {"allow_mixing",
     mixing<Mixing::kAll>("exact_only"),
     {},
     "Prune all such groups, including outputs of a softmax that are weighted by position"},
    {"rescale",
     &P::rescale,
     {},
     "Recompute numbers such as 1/sqrt(d) when their size is cut; by default they keep the values "
     "that the network was trained with"},
    {"constants",
     word<&P::constants>(kConstantsWords),
     {},
     "What remains of a removed channel: nothing (drop), or the constant that it has with zero "
     "weights, folded into the following layers (exact)",
     "WHAT"},
    {"on_failure",
     word<&P::on_failure>(kFailureWords),
     {},
     "If verification fails: refuse, or exclude the group at fault and prune the others",
     "WHAT"},
    {.key = "layers",
     .member = TextMember<P>{
         [](const P& request) { return request.depth ? text_of(*request.depth) : std::string(); },
         [](P& request, const std::string& text, std::string_view place) {
           request.depth = parse_depth(text, place);
         }},
     .meaning = "Number of residual blocks to remove, least influential on --calibration first: 3, "
                "25%, or auto: the number that suits the --budget best",
     .value = "N"},
    {"seed", &P::seed, kAnyUnsigned, "Random seed of criteria that draw at random (default: 0)",
     "N"}};

std::vector<std::string> input_texts(const P& request) {
  std::vector<std::string> texts;
  for (const InputSpec& spec : request.inputs) {
    texts.push_back((spec.name.empty() ? "" : spec.name + '=') + to_text(spec));
  }
  return texts;
}

constexpr Field<P> kRun[] = {
    {.key = "input",
     .member =
         TextsMember<P>{input_texts,
                        [](P& request, const std::vector<std::string>& specs, std::string_view) {
                          request.inputs.clear();
                          for (const std::string& spec : specs) {
                            request.inputs.push_back(parse_input_spec(spec));
                          }
                        }},
     .meaning =
         "Shape of an input whose size the model leaves open, by position or by name: 1x3x32x32, "
         "2x8:int64, :int64=16000 (a scalar), mask=1x64; mask=1 sets all elements to a value",
     .value = "SPEC"},
    {.key = "no_verify",
     .member = &P::verify,
     .meaning = "Skip verification, which runs the masked original and the smaller model",
     .negated = true},
    {.key = "threads",
     .member = TextMember<P>{
         [](const P& request) { return request.threads ? std::to_string(*request.threads) : ""; },
         [](P& request, const std::string& text, std::string_view) {
           request.threads = parse_threads(text);
         }},
     .meaning = "Number of cores for parallel work, or auto (the default): all; the output does "
                "not depend on it. When networks are timed, the number of threads of each; auto "
                "measures which is best",
     .value = "N"},
    {.key = "require_proof",
     .member = &P::require_proof,
     .meaning = "Fail if the original cannot be run",
     .only_in_files = true},
    {.key = "require_numbers",
     .member = &P::require_numbers,
     .meaning =
         "Fail if the original returns non-finite values, as a network that has diverged does",
     .only_in_files = true},
    {.key = "left_groups",
     .member = &P::left_groups,
     .meaning = "Groups to keep unpruned: g3",
     .value = "ID",
     .only_in_files = true}};

constexpr Field<InterfaceOptions> kInterface[] = {
    {"states",
     &InterfaceOptions::states,
     {},
     "Outputs that the next run takes as inputs, such as caches; both lose the same channels. auto "
     "matches them by name and shape",
     "auto|OUT=IN,…",
     kInterfaceGroup,
     ','},
    {"free",
     &InterfaceOptions::free,
     {},
     "Input or output, or one of its axes, that may lose channels",
     "NAME[:AXIS]",
     kInterfaceGroup}};

using C = CalibrationData;
constexpr Field<C> kCalibration[] = {
    {.key = "calibration",
     .member = &C::data,
     .meaning = "Calibration data, with or without labels: {}",
     .value = "DATA",
     .group = kDataGroup,
     .names = [] { return data_forms(/*labelled=*/false); }},
    {"samples", &C::samples, kFromOne,
     "Number of calibration samples, from the start of the training set (default: 256)", "N",
     kDataGroup},
    {"image",
     &C::image,
     {},
     "Preprocessing of images:DIR: resize=N|HxW, crop=N|HxW, letterbox[=PAD], rgb|bgr|grey, "
     "nchw|nhwc, scale=S, mean=A/B/C, std=A/B/C",
     "SPEC",
     kDataGroup},
    {"device",
     &C::device,
     {},
     "Device that runs the calibration data: auto, cpu (default) or cuda:N",
     "DEVICE",
     kDataGroup},
    {"mean",
     &C::mean,
     {},
     "Mean per channel, subtracted from values in 0..1: 0.5,0.5,…",
     "M",
     kDataGroup,
     ','},
    {"std", &C::deviation, kPositive,
     "Standard deviation per channel, by which values are then divided", "S", kDataGroup, ','}};

constexpr Field<C> kLoss[] = {
    {.key = "loss",
     .member = TextMember<C>{[](const C& data) { return data.loss; },
                             [](C& data, const std::string& text, std::string_view) {
                               parse_losses(text);
                               data.loss = text;
                             }},
     .meaning = "Loss of gradient criteria and of finetune, with target arrays named like the "
                "outputs: cross_entropy, bce, mse, l1, huber, kl or ctc, followed by options "
                "(huber:delta=0.5), or one for each output (boxes=huber,scores=bce)",
     .value = "WHAT",
     .group = kDataGroup}};

using R = RecoverySettings;
constexpr Field<R> kRecovery[] = {
    {.key = "recover",
     .member = TextsMember<R>{
         [](const R& recovery) {
           std::vector<std::string> names;
           for (const RecoveryMethod step : recovery.steps) {
             names.emplace_back(name_of(step));
           }
           return names;
         },
         [](R& recovery, const std::vector<std::string>& names, std::string_view place) {
           recovery.steps.clear();
           for (const std::string& name : names) {
             recovery.steps.push_back(parse_recovery(name, place));
           }
         }},
     .meaning = "Recovery steps, in order, with calibration data: {}",
     .value = "STEP,…",
     .group = kRecoveryGroup,
     .separator = ',',
     .names = [] { return all_of(recovery_names()); }},
    {"ridge", &R::ridge, kNotNegative,
     "Ridge of least squares, relative (default: for each layer, the best of 0.0001, 0.001, … 1 on "
     "held-out samples)",
     "R", kRecoveryGroup},
    {"rounds", &R::rounds, kPositive,
     "Least-squares iterations for layers followed by ReLU (default: 3)", "N", kRecoveryGroup},
    {.key = "recover_epochs",
     .member = NumberMember<R>{[](const R& recovery) { return recovery.outputs.epochs; },
                               [](R& recovery, int epochs) {
                                 recovery.finetune.epochs = epochs;
                                 recovery.outputs.epochs = epochs;
                               }},
     .interval = kNotNegative,
     .meaning = "Epochs of finetune (default: 2; 20 with --loss) and of outputs (default: 20)",
     .value = "N",
     .group = kRecoveryGroup},
    {.key = "recover_accuracy",
     .member = &R::accuracy,
     .meaning = "Measure the accuracy on the test set before and after",
     .only_in_files = true}};

using M = MatchSettings;
constexpr Field<M> kMatch[] = {
    {"recover_lr", &M::lr, kPositive,
     "Learning rate of outputs, relative to the RMS of each tensor (default: 0.001)", "RATE",
     kRecoveryGroup},
    {"recover_minutes", &M::minutes, kPositive, "Time limit for output matching, in minutes", "M",
     kRecoveryGroup},
    {.key = "match",
     .member = TextsMember<M>{
         [](const M& match) {
           std::vector<std::string> texts;
           for (const M::Term& term : match.terms) {
             const bool plain = term.weight == 1 && !contains(term.value, '=');
             texts.push_back(plain ? term.value : term.value + '=' + json_text(term.weight));
           }
           return texts;
         },
         [](M& match, const std::vector<std::string>& texts, std::string_view) {
           match.terms.clear();
           for (const std::string& text : texts) {
             match.terms.push_back(parse_term(text));
           }
         }},
     .meaning =
         "With outputs: inner values to match as well, or weights of the outputs (default: 1)",
     .value = "NAME[=WEIGHT],…",
     .group = kRecoveryGroup,
     .separator = ','}};

constexpr Field<EngineChoice> kEngine[] = {
    {"engine",
     &EngineChoice::name,
     {},
     "Engine for verification and latency budgets: libtorch, onnxruntime or auto (default): for "
     "verification onnxruntime, then libtorch if that cannot run the network or finds a "
     "difference; for latency libtorch if it is installed",
     "NAME",
     kEngineGroup}};

constexpr Field<OnnxRuntimeChoice> kOnnxRuntime[] = {
    {"onnxruntime",
     &OnnxRuntimeChoice::library,
     {},
     "Path of ONNX Runtime's library (default: PARSIMONY_ONNXRUNTIME, then the usual places)",
     "PATH"},
    {"provider",
     &OnnxRuntimeChoice::provider,
     {},
     "Execution provider of ONNX Runtime: cuda, tensorrt, openvino, xnnpack, … if the library has "
     "it; openvino:device_type=GPU sets options (default: cpu)",
     "NAME"}};

using L = LatencySettings;
constexpr Field<L> kLatency[] = {
    {"latency_table",
     &L::table,
     {},
     "File of measured layer times, which is read and extended (default: in the cache). Times of "
     "another machine are used unchanged, or measured there with --latency-command. With "
     "--round-to auto, widths follow their steps",
     "FILE",
     kLatencyGroup},
    {"batch", &L::batch, kPositive, "Batch size (default: 1)", "N", kLatencyGroup},
    {.key = "latency_tolerance",
     .member = &L::tolerance,
     .interval = kPositive,
     .meaning = "Accepted relative deviation from the latency budget",
     .only_in_files = true},
    {.key = "latency_rounds",
     .member = &L::rounds,
     .interval = kNotNegative,
     .meaning = "Maximum number of networks to measure; 0: 6, or 10 with a command",
     .only_in_files = true}};

using K = LatencyCommand;
constexpr Field<K> kLatencyCommand[] = {
    {.key = "latency_command",
     .member = &K::line,
     .meaning = "Shell command that measures a network on its target: takes {model}, an ONNX file, "
                "and prints milliseconds: \"ssh board ./time {model}\"",
     .value = "COMMAND",
     .group = kLatencyGroup,
     .fault =
         [](const std::string& line) {
           return line.find("{model}") != std::string::npos
                      ? std::string()
                      : "found \"" + line + "\", expected a command with {model} in it";
         }},
    {"latency_runs",
     &K::runs,
     {.lowest = 1, .highest = 1000},
     "Runs of the command per measurement (default: 3)",
     "N",
     kLatencyGroup},
    {"latency_timeout", &K::timeout, kPositive,
     "Time limit for a run of the command, in seconds (default: 60)", "S", kLatencyGroup},
    {"latency_retries",
     &K::retries,
     {.lowest = 0, .highest = 10},
     "Retries for failed runs, with delays of 1, 8 and 64 s (default: 3)",
     "N",
     kLatencyGroup},
    {.key = "latency_pause",
     .member = &K::pause,
     .interval = kNotNegative,
     .meaning =
         "Delay before the first retry, in seconds; each further delay is eight times as long",
     .only_in_files = true}};

constexpr Field<ProofOptions> kProof[] = {
    {.key = "proof_inputs",
     .member = &ProofOptions::inputs,
     .interval = kFromOne,
     .meaning = "Number of random inputs for verification",
     .only_in_files = true},
    {.key = "proof_seed",
     .member = &ProofOptions::seed,
     .interval = kAnyUnsigned,
     .meaning = "Random seed of verification",
     .only_in_files = true},
    {.key = "proof_tolerance",
     .member = &ProofOptions::tolerance,
     .interval = kPositive,
     .meaning = "Largest allowed difference in the proof, relative to the largest element",
     .only_in_files = true}};

// Every member needs a row, or it would be missing in a request as JSON.
static_assert(member_count<InterfaceOptions>() == std::size(kInterface));
static_assert(member_count<C>() == std::size(kCalibration) + std::size(kLoss) +
                                       4);  // inputs, states: the request's own; ranks; judges
static_assert(member_count<R>() == std::size(kRecovery) + 1);  // finetune: train_fields(); epochs
static_assert(member_count<M>() == std::size(kMatch) + 1);     // epochs: `recover_epochs`
static_assert(member_count<EngineChoice>() == std::size(kEngine) + 1);
static_assert(member_count<OnnxRuntimeChoice>() == std::size(kOnnxRuntime));
static_assert(member_count<L>() == std::size(kLatency) + 1);
static_assert(member_count<K>() == std::size(kLatencyCommand));
static_assert(member_count<ProofOptions>() == std::size(kProof));

}  // namespace

std::span<const Field<Shorthand>> shorthand_settings() { return kShorthand; }
std::span<const Field<PruneRequest>> cut_settings() { return kCut; }
std::span<const Field<PruneRequest>> run_settings() { return kRun; }
std::span<const Field<InterfaceOptions>> interface_settings() { return kInterface; }
std::span<const Field<CalibrationData>> calibration_settings() { return kCalibration; }
std::span<const Field<CalibrationData>> loss_settings() { return kLoss; }
std::span<const Field<RecoverySettings>> recovery_settings() { return kRecovery; }
std::span<const Field<MatchSettings>> match_settings() { return kMatch; }
std::span<const Field<EngineChoice>> engine_settings() { return kEngine; }
std::span<const Field<OnnxRuntimeChoice>> onnx_runtime_settings() { return kOnnxRuntime; }
std::span<const Field<LatencySettings>> latency_settings() { return kLatency; }
std::span<const Field<LatencyCommand>> latency_command_settings() { return kLatencyCommand; }
std::span<const Field<ProofOptions>> proof_settings() { return kProof; }

std::optional<int> parse_threads(const std::string& text) {
  constexpr int kMostThreads = 256;  // more only cost time, whatever the machine
  if (text.empty() || text == "auto") return std::nullopt;
  const auto threads = number_of<int>(text);
  if (!threads || *threads < 1 || *threads > kMostThreads) {
    throw machine::errors::bad_threads(text);
  }
  return threads;
}

MatchSettings::Term parse_term(const std::string& text) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos) return {.value = text};
  const auto weight = number_of<double>(std::string_view(text).substr(at + 1));
  return weight.value_or(-1) >= 0 ? MatchSettings::Term{text.substr(0, at), *weight}
                                  : MatchSettings::Term{.value = text};
}

}  // namespace parsimony
