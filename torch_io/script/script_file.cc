#include "parsimony/torch_io/script/script_file.h"

#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cstddef>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "parsimony/api/reference.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/hash.h"
#include "parsimony/programs/exported/archive.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/reason.h"
#include "parsimony/torch_io/script/archive_impl.h"
#include "parsimony/torch_io/script/editor.h"
#include "parsimony/torch_io/script/module_tensors_impl.h"
#include "parsimony/torch_io/script/run.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io {

namespace jit = torch::jit;

struct ScriptFile::Impl {
  std::string path;  ///< empty for a module in memory
  std::string sha256;
  jit::ExtraFilesMap extra;
  jit::Module module;
  std::optional<ScriptGraph> script;
  std::unique_ptr<ScriptEditor> editor;

  void load();
};

namespace {

ModelError not_torchscript(std::string_view path, std::string_view why) {
  return ModelError(path, ": not a TorchScript model: ", why);
}

/// Releases bytes from memory after they were read once.
class ReadOnce final : public caffe2::serialize::ReadAdapterInterface {
 public:
  /// Keeps a reference to `file`.
  explicit ReadOnce(const MappedFile& file) : file_(file) {}

  size_t size() const override { return file_.bytes().size(); }
  size_t read(uint64_t begin, void* buffer, size_t size, const char* /*what*/) const override {
    if (begin > file_.bytes().size()) return 0;
    const std::string_view part = file_.bytes().substr(begin, size);
    std::memcpy(buffer, part.data(), part.size());
    if (part.size() >= kLarge) file_.release(part);
    return part.size();
  }

 private:
  static constexpr size_t kLarge = size_t{1} << 20;

  const MappedFile& file_;
};

/// Gives tensors with overlapping elements, such as results of `expand`, separate memory: they
/// cannot be written to.
void unfold_expanded(jit::Module& module) {
  std::unordered_map<const c10::TensorImpl*, at::Tensor> unfolded;
  for (jit::Module part : module.modules()) {
    for (const auto& attribute : part.named_attributes(/*recurse=*/false)) {
      if (!attribute.value.isTensor() || !shows_elements_twice(attribute.value.toTensor()))
        continue;
      const at::Tensor& tensor = attribute.value.toTensor();
      at::Tensor& own = unfolded[tensor.unsafeGetTensorImpl()];
      if (!own.defined()) {
        own = tensor.detach().contiguous().set_requires_grad(tensor.requires_grad());
      }
      part.setattr(attribute.name, own);
    }
  }
}

}  // namespace

void ScriptFile::Impl::load() {
  const MappedFile file(path);
  sha256 = parsimony::sha256(file);
  if (programs::is_exported(path)) {
    throw not_torchscript(path, "it is a program of torch.export");
  }
  const std::string why = script::not_torchscript_because(file.bytes());
  if (!why.empty()) throw not_torchscript(path, why);
  extra.clear();
  for (const std::string& name : script::extra_files(file.bytes())) extra[name] = "";
  std::optional<std::string> beyond;
  try {
    module = jit::load(std::make_shared<ReadOnce>(file), at::Device(at::kCPU), extra);
    beyond = script::tensor_out_of_bounds(module);
  } catch (const std::exception& error) {  // libtorch throws several kinds
    throw not_torchscript(path, first_line(error));
  }
  if (beyond) throw not_torchscript(path, "it contains " + *beyond);
  unfold_expanded(module);
}

ScriptFile::ScriptFile(const std::string& path) : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  impl_->load();
}

ScriptFile::ScriptFile(const jit::Module& module) : impl_(std::make_unique<Impl>()) {
  impl_->module = module;
}

ScriptFile::~ScriptFile() = default;
ScriptFile::ScriptFile(ScriptFile&&) noexcept = default;
ScriptFile& ScriptFile::operator=(ScriptFile&&) noexcept = default;

const std::string& ScriptFile::path() const { return impl_->path; }

const std::string& ScriptFile::sha256() const { return impl_->sha256; }

const torch::jit::Module& ScriptFile::module() const { return impl_->module; }

const jit::ExtraFilesMap& ScriptFile::extra_files() const { return impl_->extra; }

bool ScriptFile::in_memory() const { return impl_->path.empty(); }

ScriptGraph& ScriptFile::read(const std::vector<InputSpec>& inputs) {
  const bool used_up = edited();
  impl_->editor.reset();
  // It may have run AsWritten in between.
  if (in_memory() && impl_->script) return *impl_->script;
  if (used_up && !in_memory()) impl_->load();
  impl_->script = read_script(impl_->module, inputs);
  return *impl_->script;
}

ModelEditor& ScriptFile::editor() {
  if (!impl_->script) throw ModelError(impl_->path, ": nothing to edit: call read first");
  if (!impl_->editor) {
    impl_->editor = std::make_unique<ScriptEditor>(
        *impl_->script, in_memory() ? Original::kStays : Original::kGivenUp);
  }
  return *impl_->editor;
}

bool ScriptFile::edited() const { return impl_->editor && impl_->editor->edited(); }

torch::jit::Module ScriptFile::small() {
  return edited() ? impl_->editor->finish() : impl_->module;
}

void ScriptFile::write(const std::string& path) {
  if (!edited() && !in_memory()) return write_file(path, read_file(impl_->path));
  const jit::Module module = small();
  NewFile file(path);
  // libtorch closes the archive in a destructor, which cannot throw.
  std::exception_ptr failed;
  const auto append = [&](const void* bytes, size_t size) {
    try {
      if (!failed) file.write({static_cast<const char*>(bytes), size});
    } catch (const IoError&) {
      failed = std::current_exception();
    }
    return size;
  };
  jit::ExportModule(module, append, impl_->extra);
  if (failed) std::rethrow_exception(failed);
  file.commit();
}

namespace {

void require_graphs(const Engine& engine, const std::string& path) {
  if (!engine.executes_graphs()) {
    throw UnsupportedError(engine.name(), " runs ONNX files only, and ", path, " is not one");
  }
}

}  // namespace

ScriptModel::ScriptModel(const std::string& path, std::vector<InputSpec> specs)
    : specs_(std::move(specs)), file_(path), script_(&file_.read(specs_)) {}

ScriptModel::ScriptModel(const jit::Module& module, std::vector<InputSpec> specs)
    : specs_(std::move(specs)), file_(module), script_(&file_.read(specs_)) {}

std::unique_ptr<Network> ScriptModel::opened(TorchNetwork network) const {
  if (file_.in_memory()) network = as_written(std::move(network));
  return std::make_unique<TorchNetwork>(std::move(network));
}

std::unique_ptr<Network> ScriptModel::open(Engine& engine) {
  require_graphs(engine, path());
  return opened(script_run(file_.small()));
}

std::unique_ptr<Network> ScriptModel::open_masked(Engine& engine, const Plan& plan) {
  require_graphs(engine, path());
  // Zeros in the module's own tensors depend on neither reader nor executor.
  if (!zeros_suffice(plan) || !has_all(*script_, plan)) {
    return engine.open_masked(script_->graph, plan, {});
  }
  return opened(zeroed_run(file_.module(), *script_, plan));
}

}  // namespace parsimony::torch_io
