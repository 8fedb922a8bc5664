#include "parsimony/data/sample_source.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/base/hash.h"
#include "parsimony/base/parse.h"
#include "parsimony/data/arrays.h"
#include "parsimony/data/errors.h"
#include "parsimony/data/formats_impl.h"
#include "parsimony/engines/random_inputs.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/interface.h"

namespace parsimony {
namespace {

ConfigError arrays_differ(std::string_view source, std::string_view first, int64_t samples,
                          std::string_view other, int64_t other_samples) {
  return ConfigError(source, ": array ", in_quotes(first), " has ", samples, " samples, ",
                     in_quotes(other), " has ", other_samples);
}

void check_finite(const TensorBytes& array, std::string_view file, int64_t first) {
  if (!is_floating(array.dtype)) return;
  const ReadNumber read = reader_of(array.dtype);
  const int64_t size = size_of(array.dtype);
  const auto count = static_cast<int64_t>(array.bytes.size()) / size;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isfinite(read(array.bytes.data() + i * size))) continue;
    throw ModelError(file, ": element ",
                     first * count / std::max<int64_t>(1, array.dims.front()) + i,
                     " is NaN or infinite");
  }
}

int64_t count_of(const DataSpec& spec, std::string_view source) {
  const auto count = number_of<int64_t>(spec.place);
  if (count.value_or(0) < 1) throw errors::bad_spec(source, spec.format->form);
  return *count;
}

/// Returns the side of an input's square pictures; nothing if it is dynamic.
std::optional<int64_t> side_of(const Value& input) {
  const auto& dims = input.declared;
  if (!dims || dims->size() != 4 || (*dims)[2] <= 0 || (*dims)[2] != (*dims)[3]) return {};
  return (*dims)[2];
}

}  // namespace

struct SampleSource::State {
  /// How an array is distributed over the samples.
  enum class Spread : uint8_t {
    kSamples,  ///< an index of the first axis each
    kRuns,     ///< an index each for a run, whose axis the input does not have
    kSame,     ///< all of it for all
  };

  struct Placed {
    const ArrayView* array = nullptr;  ///< null: a value that a spec gives
    Spread spread = Spread::kSame;
  };

  State(std::string from, const Graph& of, SampleOptions options)
      : source(std::move(from)), graph(of), specs(by_position(options.inputs, of)) {
    const DataSpec spec = parse_data_spec(source, /*labelled=*/false);
    const Format& format = *spec.format;
    const bool stored = format.arrays == nullptr && format.input == nullptr && !format.drawn;
    if (!stored && !options.labelled.mean.empty()) {
      throw ConfigError("--mean and --std require a data set with classes; ", in_quotes(source),
                        " is used unchanged",
                        format.name == "images" ? "; pass --image mean=…,std=…" : "");
    }
    if (format.drawn) {
      samples = count_of(spec, source);
    } else if (format.arrays != nullptr) {
      open_arrays();
    } else {
      open_stream(spec, options);
    }
  }

  void open_arrays() {
    files.emplace(source);
    placed.resize(graph.inputs.size());
    targets.resize(graph.outputs.size());
    for (const ArrayView& array : files->arrays()) place(array);
    for (size_t i = 0; i < placed.size(); ++i) {
      if (placed[i].array == nullptr && !has_value(i)) throw missing(i);
    }
    count_samples();
  }

  bool has_value(size_t i) const { return i < specs.size() && specs[i].value.has_value(); }

  /// Opens the stream for the first input without a value.
  void open_stream(const DataSpec& spec, SampleOptions& options) {
    while (streamed < graph.inputs.size() && has_value(streamed)) ++streamed;
    if (streamed == graph.inputs.size()) {
      throw ConfigError(source, " provides one input, but --input sets values for all of them");
    }
    for (size_t i = streamed + 1; i < graph.inputs.size(); ++i) {
      if (!has_value(i)) {
        throw ConfigError(
            source, " provides one input, but ", in_quotes(input(i).name),
            " has no data: pass --input ", input(i).name,
            "=VALUE, --states if an output is fed back to it, or arrays for all inputs (npz:FILE)");
      }
    }
    Value taker = input(streamed);
    const bool given = streamed < specs.size() && !specs[streamed].dims.empty();
    if (given) taker.declared = specs[streamed].dims;
    if (spec.format->input != nullptr) {
      stream = spec.format->input(spec.place, taker, options.image);
    } else {
      if (!options.labelled.size) options.labelled.size = side_of(input(streamed));
      dataset = std::make_shared<const Dataset>(read_dataset(source, options.labelled));
      stream = open_dataset(dataset);
    }
    samples = stream->samples();
    fixed = fixed_batch(streamed);
    const TensorBytes first = stream->rows(0, 1);
    specs.resize(std::max(specs.size(), streamed + 1));
    specs[streamed].dims = first.dims;
    const auto& declared = input(streamed).declared;
    Shape run = first.dims;
    run.front() = fixed.value_or(1);
    if (declared && !fits_declared(run, *declared)) {
      throw ConfigError(source, " yields shape ", to_string(first.dims), ", the input expects ",
                        to_string(*declared), " (-1 is any size)");
    }
  }

  static std::optional<Spread> spread_of(const ArrayView& array, const Value& input) {
    const Shape& found = array.dims;
    if (!input.declared) return found.empty() ? Spread::kSame : Spread::kSamples;
    const Shape& declared = *input.declared;
    if (fits_declared(found, declared)) {
      const bool open = !declared.empty() && declared.front() < 0;
      return open ? Spread::kSamples : Spread::kSame;
    }
    if (found.empty()) return std::nullopt;
    const auto after = std::span(found).subspan(1);
    const bool one_each = !declared.empty() &&
                          fits_declared(after, std::span(declared).subspan(1)) &&
                          found.front() % declared.front() == 0;
    if (one_each) return Spread::kSamples;
    if (fits_declared(after, declared)) return Spread::kRuns;
    return std::nullopt;
  }

  const Value& input(size_t i) const { return graph.value(graph.inputs[i]); }

  ConfigError missing(size_t i) const {
    std::string known;
    for (const ArrayView& array : files->arrays()) {
      known += (known.empty() ? "" : ", ") + in_quotes(array.name) + " " + to_string(array.dims);
    }
    const auto& declared = input(i).declared;
    return ConfigError(source, ": no array for input ", in_quotes(input(i).name), " ",
                       declared ? to_string(*declared) : "of any shape", "; there ",
                       known.empty() ? "is none" : "are " + known, ". To fill it: --input ",
                       input(i).name, "=0");
  }

  void place(const ArrayView& array) {
    const size_t i = input_of(graph, array.name);
    if (i < placed.size()) {
      const auto spread = spread_of(array, input(i));
      if (!spread) {
        throw errors::array_of_other_shape(array.name, to_string(array.dims),
                                           to_string(*input(i).declared));
      }
      placed[i] = {&array, *spread};
    } else if (const size_t o = output_of(array.name); o < targets.size() && !array.dims.empty()) {
      targets[o] = &array;
    } else if (names_labels(array.name) && array.dims.size() == 1) {
      classes = &array;
    } else {
      throw no_such_input(graph, array.name, array.dims);
    }
  }

  size_t output_of(std::string_view array) const {
    const auto named = [&](ValueId output) { return graph.value(output).name == array; };
    return std::ranges::find_if(graph.outputs, named) - graph.outputs.begin();
  }

  /// Returns the samples of an array; 0 if it is the same for all.
  int64_t samples_of(size_t i) const {
    const Placed& at = placed[i];
    if (at.array == nullptr || at.spread == Spread::kSame) return 0;
    return at.array->dims.front() * (at.spread == Spread::kRuns ? fixed.value_or(1) : 1);
  }

  void count_samples() {
    for (size_t i = 0; i < placed.size(); ++i) {
      if (placed[i].spread == Spread::kSamples && fixed_batch(i)) fixed = fixed_batch(i);
    }
    for (const Placed& at : placed) {
      if (at.spread == Spread::kRuns && !fixed) fixed = 1;
      if (at.array != nullptr && !at.array->dims.empty() && at.array->dims.front() == 0) {
        throw ConfigError(source, ": array ", in_quotes(at.array->name), " has no samples");
      }
    }
    const ArrayView* first = nullptr;
    for (size_t i = 0; i < placed.size(); ++i) {
      const int64_t own = samples_of(i);
      if (own == 0) continue;
      if (first != nullptr && own != samples) {
        throw arrays_differ(source, first->name, samples, placed[i].array->name, own);
      }
      if (first == nullptr) first = placed[i].array;
      samples = own;
    }
    if (first == nullptr) {  // one run
      samples = fixed_batch(0).value_or(1);
      fixed = samples;
    }
    std::vector<const ArrayView*> beside = targets;
    beside.push_back(classes);
    for (const ArrayView* array : beside) {
      if (array == nullptr || array->dims.front() == samples) continue;
      throw arrays_differ(source, first == nullptr ? "input" : first->name, samples, array->name,
                          array->dims.front());
    }
  }

  /// Returns the first axis of an input, if the file fixes it.
  std::optional<int64_t> fixed_batch(size_t i) const {
    const auto& declared = input(i).declared;
    const bool fixes = declared && !declared->empty() && declared->front() > 0;
    return fixes ? std::optional(declared->front()) : std::nullopt;
  }

  /// Returns whether the source has samples of this input.
  bool has(size_t i) const { return stream ? i == streamed : files && placed[i].array != nullptr; }

  TensorBytes read(size_t i, int64_t begin, int64_t count) const {
    TensorBytes part = stream ? stream->rows(begin, count) : read_array(placed[i], begin, count);
    part.name = input(i).name;
    return converted(std::move(part), input(i).dtype);
  }

  TensorBytes read_array(const Placed& from, int64_t begin, int64_t count) const {
    const auto& [array, spread] = from;
    TensorBytes part;
    if (spread == Spread::kSame) {
      part = array->all();
      check_finite(part, array->file, 0);
    } else {
      const bool runs = spread == Spread::kRuns;
      const int64_t first = runs ? begin / *fixed : begin;
      part = array->rows(first, runs ? 1 : count);
      check_finite(part, array->file, first);
      if (runs) part.dims.erase(part.dims.begin());
    }
    return part;
  }

  TensorList drawn(int64_t first, int64_t count) const {
    runtime::RandomInputOptions feed{.specs = specs, .seed = 1 + static_cast<uint64_t>(first)};
    if (!fixed_batch(0)) feed.batch = count;
    return runtime::random_inputs(graph, feed);
  }

  std::string source;
  const Graph& graph;
  std::vector<InputSpec> specs;
  std::optional<ArrayFiles> files;  ///< empty: random numbers, or a stream
  std::unique_ptr<InputSource> stream;
  std::shared_ptr<const Dataset> dataset;  ///< of the stream
  size_t streamed = 0;                     ///< the input that the stream fills
  std::vector<Placed> placed;              ///< by input
  std::vector<const ArrayView*> targets;   ///< by output; null where there is none
  const ArrayView* classes = nullptr;
  std::optional<int64_t> fixed;  ///< samples of a run
  int64_t samples = 0;
};

SampleSource::SampleSource(const std::string& spec, const Graph& graph, SampleOptions options)
    : state_(std::make_unique<State>(spec, graph, std::move(options))) {}
SampleSource::~SampleSource() = default;
SampleSource::SampleSource(SampleSource&&) noexcept = default;

int64_t SampleSource::samples() const { return state_->samples; }
bool SampleSource::has(size_t input) const { return state_->has(input); }
int64_t SampleSource::test_samples() const {
  return state_->stream ? state_->stream->test_samples() : 0;
}
const std::shared_ptr<const Dataset>& SampleSource::dataset() const { return state_->dataset; }

bool SampleSource::labelled() const {
  return state_->stream ? state_->stream->label_dims().has_value() : state_->classes != nullptr;
}
Shape SampleSource::label_dims() const {
  return state_->stream ? state_->stream->label_dims().value_or(Shape()) : Shape();
}

int64_t SampleSource::batch(int64_t expected) const {
  const bool random = !state_->files && !state_->stream;
  const auto fixed = random ? state_->fixed_batch(0) : state_->fixed;
  return fixed.value_or(std::min(expected, state_->samples));
}

namespace {

std::atomic<int64_t> own_count = 0;
std::atomic<std::atomic<int64_t>*> used_count = &own_count;

}  // namespace

std::atomic<int64_t>& samples_read() { return *used_count; }

void count_samples_in(std::atomic<int64_t>& counter) { used_count = &counter; }

TensorList SampleSource::inputs(int64_t first, int64_t count) const {
  samples_read() += count;
  const State& state = *state_;
  TensorList values;
  TensorList result;
  for (size_t i = 0; i < state.graph.inputs.size(); ++i) {
    if (state.has(i)) {
      result.push_back(state.read(i, first, count));
      continue;
    }
    if (values.empty()) values = state.drawn(first, count);
    result.push_back(values[i]);
  }
  return result;
}

bool SampleSource::has_target(size_t output) const {
  return output < state_->targets.size() && state_->targets[output] != nullptr;
}

TensorList SampleSource::targets(int64_t first, int64_t count) const {
  TensorList result;
  for (const ArrayView* array : state_->targets) {
    if (array == nullptr) {
      result.emplace_back();
      continue;
    }
    result.push_back(array->rows(first, count));
    check_finite(result.back(), array->file, first);
  }
  return result;
}

std::vector<int64_t> SampleSource::labels(int64_t first, int64_t count) const {
  if (state_->stream) return state_->stream->labels(first, count);
  const TensorBytes part = converted(state_->classes->rows(first, count), DType::kInt64);
  std::vector<int64_t> labels(count);
  std::copy_n(part.bytes.data(), part.bytes.size(), reinterpret_cast<std::byte*>(labels.data()));
  return labels;
}

std::string SampleSource::fingerprint() const {
  if (state_->dataset) return state_->dataset->fingerprint;
  Sha256 sum;
  for (const TensorBytes& input : inputs(0, first_run())) sum.add(input.bytes);
  return sum.hex();
}

int64_t SampleSource::first_run() const { return std::min(batch(1), samples()); }

int64_t SampleSource::values() const {
  const int64_t run = first_run();
  int64_t values = 0;
  for (const TensorBytes& input : inputs(0, run)) values += element_count(input.dims) / run;
  return values;
}

}  // namespace parsimony
