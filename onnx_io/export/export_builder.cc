#include <utility>

#include "parsimony/graph/attributes.h"
#include "parsimony/onnx_io/export/export.h"
#include "parsimony/onnx_io/export/export_builder_impl.h"

namespace parsimony::onnx_io {

ExportBuilder::ExportBuilder() : GraphBuilder(kExportOpset, '/') {}

ValueId ExportBuilder::tensor(const std::string& name, DType dtype, const Shape& dims,
                              std::vector<std::byte> bytes) {
  return GraphBuilder::tensor(is_taken(name) ? unused_name() : name, dtype, dims, std::move(bytes));
}

std::vector<ValueId> ExportBuilder::emit_many(const std::string& op, std::vector<ValueId> inputs,
                                              size_t outputs, NodeAttributes attributes) {
  while (!inputs.empty() && inputs.back() == kNone) inputs.pop_back();
  std::vector<ValueId> results =
      GraphBuilder::emit_many(op, std::move(inputs), outputs, std::move(attributes));
  const auto* to = attr_if<int64_t>(graph().nodes.back(), "to");
  if (op == "Cast" && to != nullptr) set_dtype(results.front(), dtype_of_onnx(*to));
  return results;
}

ValueId ExportBuilder::cast(ValueId value, DType type) {
  if (value == kNone || dtype(value) == type || type == DType::kUnknown) return value;
  if (is_weight(value) && weight_of(value).count() == 1) {
    const Weight& weight = weight_of(value);
    const HostTensor from = to_host(weight);
    const bool truth = from.number(0) != 0;
    HostTensor to = type == DType::kBool ? HostTensor::scalar(truth ? 1 : 0, type)
                                         : HostTensor::of(from.number(0), type);
    to.dims = weight.dims;
    return constant(to);
  }
  return emit("Cast", {value}, {{"to", int64_t{onnx_number(type)}}});
}

}  // namespace parsimony::onnx_io
