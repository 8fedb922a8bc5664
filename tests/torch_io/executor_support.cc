#include "tests/torch_io/executor_support.h"

#include <ATen/core/grad_mode.h>

#include <limits>
#include <stdexcept>

#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::test {
namespace {

at::ScalarType type_of(int32_t code) {
  switch (code) {
    case onnx::TensorProto::FLOAT:
      return at::kFloat;
    case onnx::TensorProto::DOUBLE:
      return at::kDouble;
    case onnx::TensorProto::FLOAT16:
      return at::kHalf;
    case onnx::TensorProto::BFLOAT16:
      return at::kBFloat16;
    case onnx::TensorProto::INT8:
      return at::kChar;
    case onnx::TensorProto::INT16:
      return at::kShort;
    case onnx::TensorProto::INT32:
      return at::kInt;
    case onnx::TensorProto::INT64:
      return at::kLong;
    case onnx::TensorProto::UINT8:
      return at::kByte;
    case onnx::TensorProto::BOOL:
      return at::kBool;
    default:
      throw std::runtime_error("no tensors of type " + std::to_string(code));
  }
}

template <typename Field>
at::Tensor copied(const Field& field, const std::vector<int64_t>& dims, at::ScalarType type) {
  using T = typename Field::value_type;
  const auto wide = std::is_floating_point_v<T> ? at::kDouble : at::kLong;
  const at::Tensor result = at::empty({field.size()}, wide);
  for (int i = 0; i < field.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      result.data_ptr<double>()[i] = static_cast<double>(field[i]);
    } else {
      result.data_ptr<int64_t>()[i] = static_cast<int64_t>(field[i]);
    }
  }
  return result.to(type).reshape(dims);  // throws if there are more or less
}

}  // namespace

bool runs(const Graph& graph) { return GraphModuleImpl::runs(graph); }

Tensors run(const Graph& graph, const Tensors& inputs, const Plan* plan) {
  const at::NoGradGuard guard;
  GraphModule net(graph);
  if (plan != nullptr) net->mask(*plan);
  return net->forward(inputs);
}

at::Tensor tensor_of(const onnx::TensorProto& proto) {
  const at::ScalarType type = type_of(proto.data_type());
  const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  if (proto.has_raw_data()) {
    const std::string& bytes = proto.raw_data();
    const auto count = static_cast<int64_t>(bytes.size() / c10::elementSize(type));
    const at::Tensor result = at::empty({count}, type);
    if (result.nbytes() != bytes.size()) throw std::runtime_error("half an element");
    std::copy(bytes.begin(), bytes.end(), static_cast<char*>(result.data_ptr()));
    return result.reshape(dims);
  }
  if (type == at::kFloat) return copied(proto.float_data(), dims, type);
  if (type == at::kDouble) return copied(proto.double_data(), dims, type);
  if (type == at::kLong) return copied(proto.int64_data(), dims, type);
  if (type == at::kHalf || type == at::kBFloat16) {
    return copied(proto.int32_data(), dims, at::kShort).view(type);
  }
  return copied(proto.int32_data(), dims, type);
}

Tensors seeded_inputs(const Graph& graph, const Probe& probe, int seed) {
  at::manual_seed(static_cast<uint64_t>(seed));
  const Facts facts = infer(graph, probe);
  Tensors inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ValueId v = graph.inputs[i];
    if (!facts.shapes[v]) throw std::runtime_error("no shape of " + graph.values[v].name);
    const at::ScalarType type = torch_io::scalar_type_of(graph.values[v].dtype);
    const Shape& dims = *facts.shapes[v];
    if (i < probe.inputs.size() && probe.inputs[i].value) {
      inputs.push_back(at::full(dims, *probe.inputs[i].value, type));
    } else if (at::isFloatingType(type)) {
      inputs.push_back(at::randn(dims).to(type));
    } else {
      inputs.push_back(at::randint(2, dims, type));
    }
  }
  return inputs;
}

double relative_error(const at::Tensor& found, const at::Tensor& expected) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (found.sizes() != expected.sizes() || found.scalar_type() != expected.scalar_type()) {
    return kInfinite;
  }
  if (expected.numel() == 0) return 0;
  const at::Tensor a = found.to(at::kDouble);
  const at::Tensor b = expected.to(at::kDouble);
  const at::Tensor same = (a == b) | (a.isnan() & b.isnan());
  const at::Tensor difference = at::where(same, at::zeros_like(a), (a - b).abs());
  const double worst = difference.max().item<double>();
  const at::Tensor finite = at::where(b.isfinite(), b.abs(), at::zeros_like(b));
  const double scale = finite.max().item<double>();
  if (worst != worst) return kInfinite;
  return worst == 0 ? 0 : worst / (scale > 0 ? scale : 1);
}

}  // namespace parsimony::test
