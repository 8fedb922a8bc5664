#include "parsimony/cli/torch/export.h"

#include "parsimony/torch_io/export/export.h"
#include "parsimony/torch_io/script/script_file.h"

namespace parsimony::component {

cli::ExportOutcome export_onnx(const cli::ExportJob& job) {
  const torch_io::ScriptFile file(job.model);
  std::vector<InputSpec> inputs;
  for (const std::string& spec : job.inputs) inputs.push_back(parse_input_spec(spec));
  Exported made = parsimony::export_onnx(file.module(), inputs, job.output,
                                         {.dynamic_batch = job.dynamic_batch,
                                          .fold_batchnorm = job.fold_batchnorm,
                                          .outputs = job.names,
                                          .proof = job.proof});
  return {std::move(made.inputs), std::move(made.outputs), made.opset, made.nodes, made.bytes,
          std::move(made.notes),  std::move(made.proof)};
}

}  // namespace parsimony::component
