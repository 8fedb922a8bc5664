#include "parsimony/cli/torch/export.h"

#include "parsimony/torch_io/export/export.h"
#include "parsimony/torch_io/script/script_file.h"

namespace parsimony::component {

cli::ExportOutcome export_onnx(const cli::ExportOrder& order) {
  const torch_io::ScriptFile file(order.model);
  std::vector<InputSpec> inputs;
  for (const std::string& spec : order.inputs) inputs.push_back(parse_input_spec(spec));
  Exported made = parsimony::export_onnx(file.module(), inputs, order.output,
                                         {.dynamic_batch = order.dynamic_batch,
                                          .fold_batchnorm = order.fold_batchnorm,
                                          .outputs = order.names,
                                          .proof = order.proof});
  return {std::move(made.inputs), std::move(made.outputs), made.opset, made.nodes, made.bytes,
          std::move(made.notes),  std::move(made.proof)};
}

}  // namespace parsimony::component
