#include "parsimony/engines/random_inputs.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <random>
#include <string>

#include "parsimony/engines/errors.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony::runtime {
namespace {

using Generator = std::mt19937_64;

bool looks_like_flag(std::string name) {
  constexpr auto kMarks = std::to_array<const char*>({"mask", "type", "segment", "flag", "pad"});
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(kMarks.begin(), kMarks.end(),
                     [&](const char* mark) { return name.find(mark) != std::string::npos; });
}

template <typename Element, typename Draw>
void fill(TensorBytes& tensor, const Draw& draw) {
  tensor.bytes.resize(static_cast<size_t>(element_count(tensor.dims)) * sizeof(Element));
  for (size_t at = 0; at < tensor.bytes.size(); at += sizeof(Element)) {
    const auto element = static_cast<Element>(draw());
    std::memcpy(tensor.bytes.data() + at, &element, sizeof element);
  }
}

template <typename Draw>
void fill_floats(TensorBytes& tensor, const Draw& draw) {
  switch (tensor.dtype) {
    case DType::kFloat64:
      return fill<double>(tensor, draw);
    case DType::kFloat16:
      return fill<Eigen::half>(tensor, draw);
    case DType::kBFloat16:
      return fill<Eigen::bfloat16>(tensor, draw);
    default:
      return fill<float>(tensor, draw);
  }
}

/// Fills integers; signed and unsigned types have the same bytes for the drawn values.
template <typename Draw>
void fill_integers(TensorBytes& tensor, const Draw& draw) {
  switch (size_of(tensor.dtype)) {
    case 1:
      return fill<uint8_t>(tensor, draw);
    case 2:
      return fill<uint16_t>(tensor, draw);
    case 4:
      return fill<uint32_t>(tensor, draw);
    case 8:
      return fill<uint64_t>(tensor, draw);
    default:
      throw errors::no_such_type(tensor.name, name_of(tensor.dtype));
  }
}

void fill_with(TensorBytes& tensor, double value) {
  if (is_floating(tensor.dtype)) {
    fill_floats(tensor, [&] { return static_cast<float>(value); });
  } else {
    fill_integers(tensor, [&] { return static_cast<int64_t>(value); });
  }
}

void fill_at_random(TensorBytes& tensor, const Draw& draw, Generator& generator) {
  if (is_floating(tensor.dtype) && draw.floats == Floats::kNormal) {
    std::normal_distribution<float> normal;
    return fill_floats(tensor, [&] { return normal(generator); });
  }
  if (is_floating(tensor.dtype)) {
    const float first = draw.floats == Floats::kUnit ? 0.0F : 0.5F;
    std::uniform_real_distribution<float> uniform(first, first + 1);
    return fill_floats(tensor, [&] { return uniform(generator); });
  }
  const bool two = tensor.dtype == DType::kBool || looks_like_flag(tensor.name);
  const int64_t most = size_of(tensor.dtype) == 1 ? 127 : draw.below;
  std::uniform_int_distribution<int64_t> uniform(0, (two ? 2 : std::min(draw.below, most)) - 1);
  fill_integers(tensor, [&] { return uniform(generator); });
}

std::vector<Shape> shapes_of(const Graph& graph, const Probe& probe) {
  const Facts facts = infer(graph, probe);
  std::vector<Shape> shapes;
  for (const ValueId input : graph.inputs) {
    const auto& shape = facts.shapes[input];
    if (!shape) {
      throw UnsupportedError("the shape of input ", in_quotes(graph.value(input).name),
                             " is unknown; pass --input");
    }
    shapes.push_back(*shape);
  }
  return shapes;
}

/// Returns the rows of the smallest table that the value indexes, as words index a vocabulary; at
/// most `most`.
int64_t rows_indexed(const Graph& graph, ValueId value, int64_t most, int copies = 0) {
  constexpr int kMostCopies = 8;
  for (const Use& use : graph.value(value).uses) {
    const Node& node = graph.node(use.node);
    const bool copied = has_trait(node, kCopies) && !node.outputs.empty();
    if (copied && node.outputs[0] != kNone && copies < kMostCopies) {
      most = rows_indexed(graph, node.outputs[0], most, copies + 1);
    }
    if (schema_of(node).linear.kind != LinearKind::kLookup || use.input != 1) continue;
    const WeightId table = node.inputs[0] == kNone ? kNone : graph.value(node.inputs[0]).weight;
    if (table == kNone || graph.weight(table).dims.empty()) continue;
    const Shape& dims = graph.weight(table).dims;
    const int64_t axis = attr(node, "axis", int64_t{0});
    most = std::min(most, std::max<int64_t>(1, dims[axis < 0 ? axis + dims.size() : axis]));
  }
  return most;
}

TensorList drawn(const Graph& graph, const std::vector<Shape>& shapes,
                 const std::vector<InputSpec>& specs, uint64_t seed, const Draw& draw) {
  TensorList inputs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Value& value = graph.value(graph.inputs[i]);
    TensorBytes input;
    input.name = value.name;
    input.dtype = value.dtype;
    input.dims = shapes[i];
    Generator generator(seed + i);
    if (i < specs.size() && specs[i].value) {
      fill_with(input, *specs[i].value);
    } else {
      Draw own = draw;
      own.below = rows_indexed(graph, graph.inputs[i], draw.below);
      fill_at_random(input, own, generator);
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

/// Sets the batch dimension to `batch`. ONNX files declare it as symbolic; in TorchScript, with
/// shapes from `--input` only, it is the leading dimension of the same size as the first input's.
void set_batch(const Graph& graph, int64_t batch, std::vector<Shape>& shapes) {
  const bool fixes = graph.format == "onnx";
  bool has_batch = false;
  const int64_t first = shapes.empty() || shapes[0].empty() ? 0 : shapes[0][0];
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].empty()) continue;
    const auto& declared = graph.value(graph.inputs[i]).declared;
    const bool open = fixes ? !declared || (!declared->empty() && declared->front() < 0)
                            : shapes[i].front() == first;
    if (open) shapes[i].front() = batch;
    has_batch = has_batch || shapes[i].front() == batch;
  }
  if (has_batch) return;
  const std::string name = graph.inputs.empty() ? "" : graph.value(graph.inputs[0]).name;
  throw UnsupportedError("the file fixes input ", in_quotes(name), " to ",
                         shapes.empty() ? "" : to_string(shapes[0]), ", a batch of ", batch,
                         " does not fit");
}

}  // namespace

TensorList random_inputs(const Graph& graph, const RandomInputOptions& options) {
  Probe probe = choose_probe(graph, options.specs);
  probe.first = 1;
  std::vector<Shape> shapes = shapes_of(graph, probe);
  if (options.batch) set_batch(graph, *options.batch, shapes);
  return drawn(graph, shapes, probe.inputs, options.seed, {.below = options.below});
}

TensorList random_inputs(const Graph& graph, const Probe& probe, uint64_t seed, const Draw& draw) {
  return drawn(graph, shapes_of(graph, probe), probe.inputs, seed, draw);
}

TensorBytes varied(TensorBytes tensor, uint64_t seed) {
  if (!is_floating(tensor.dtype)) return tensor;
  Generator generator(seed);
  std::uniform_real_distribution<double> factor(0.5, 1.5);
  const ReadNumber read = reader_of(tensor.dtype);
  const int64_t size = size_of(tensor.dtype);
  for (std::byte* at = tensor.bytes.data(); at < tensor.bytes.data() + tensor.bytes.size();
       at += size) {
    write_number(read(at) * factor(generator), tensor.dtype, at);
  }
  return tensor;
}

std::string_view name_of(Floats floats) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"normally distributed", "between 0 and 1", "between 0.5 and 1.5"});
  return kNames[static_cast<size_t>(floats)];
}

int64_t batch_of(const TensorList& inputs) {
  const auto at = std::find_if(inputs.begin(), inputs.end(),
                               [](const TensorBytes& input) { return input.dims.size() >= 2; });
  return at == inputs.end() ? 1 : at->dims.front();
}

}  // namespace parsimony::runtime
