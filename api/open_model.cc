#include "parsimony/api/open_model.h"

#include "parsimony/api/torch_component.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/model.h"

namespace parsimony {

std::unique_ptr<EditableFile> open_model(const std::string& path,
                                         const std::vector<InputSpec>& specs) {
  if (is_zip(path)) return torch_component().open_script(path, specs);
  return std::make_unique<onnx_io::OnnxModel>(path);
}

}  // namespace parsimony
