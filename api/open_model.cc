#include "parsimony/api/open_model.h"

#include "parsimony/api/torch_component.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/model.h"
#include "parsimony/programs/exported/model.h"

namespace parsimony {

std::unique_ptr<EditableFile> open_model(const std::string& path,
                                         const std::vector<InputSpec>& specs) {
  std::unique_ptr<EditableFile> model;
  if (!is_zip(path)) {
    model = std::make_unique<onnx_io::OnnxModel>(path);
  } else if (programs::is_exported(path)) {
    model = std::make_unique<programs::ExportedModel>(path, specs);
  } else {
    model = torch_component().open_script(path, specs);
  }
  model->graph().file_bytes = bytes_with_data(*model);
  return model;
}

int64_t bytes_with_data(const EditableFile& model) {
  int64_t bytes = size_of_file(model.path());
  for (const std::string& file : model.data_files()) bytes += size_of_file(file);
  return bytes;
}

}  // namespace parsimony
