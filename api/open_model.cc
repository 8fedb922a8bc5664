#include "parsimony/api/open_model.h"

#include "parsimony/api/torch_component.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/model.h"

namespace parsimony {

std::unique_ptr<EditableFile> open_model(const std::string& path,
                                         const std::vector<InputSpec>& specs) {
  std::unique_ptr<EditableFile> model = is_zip(path) ? torch_component().open_script(path, specs)
                                                     : std::make_unique<onnx_io::OnnxModel>(path);
  model->graph().file_bytes = size_of_file(path);
  return model;
}

}  // namespace parsimony
