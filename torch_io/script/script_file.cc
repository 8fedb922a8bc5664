#include "parsimony/torch_io/script/script_file.h"

#include <torch/csrc/jit/serialization/import.h>

#include <optional>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/files.h"
#include "parsimony/graph/sha256.h"
#include "parsimony/torch_io/script/archive_impl.h"
#include "parsimony/torch_io/script/bounds_impl.h"
#include "parsimony/torch_io/script/editor.h"
#include "parsimony/torch_io/script/errors_impl.h"

namespace parsimony::torch_io {

namespace jit = torch::jit;
namespace errors = script::errors;

struct ScriptFile::Impl {
  std::string path;
  std::string sha256;
  jit::ExtraFilesMap extra;
  jit::Module module;
  std::optional<ScriptGraph> script;
  std::shared_ptr<ScriptEditor> editor;
  std::optional<jit::Module> small;
};

namespace {

/// Hands everything on to the file's own editor.
class Forwarding : public ModelEditor {
 public:
  explicit Forwarding(std::shared_ptr<ScriptEditor> to) : to_(std::move(to)) {}

  void bypass(const std::string& node, int input) override { to_->bypass(node, input); }
  void copy(const std::string& name, const std::string& of, const std::string& consumer,
            int input) override {
    to_->copy(name, of, consumer, input);
  }
  void slice(const std::string& tensor, std::span<const AxisKeep> axes) override {
    to_->slice(tensor, axes);
  }
  void zero_smallest(const std::string& tensor, int64_t count) override {
    to_->zero_smallest(tensor, count);
  }
  void assign(const std::string& tensor, std::span<const std::byte> values) override {
    to_->assign(tensor, values);
  }
  void set_attribute(const std::string& node, const std::string& attribute,
                     std::span<const int64_t> values) override {
    to_->set_attribute(node, attribute, values);
  }
  void set_input(const std::string& node, int input, const HostTensor& constant) override {
    to_->set_input(node, input, constant);
  }
  void update_shapes(const ChangeOf& change) override { to_->update_shapes(change); }

 private:
  std::shared_ptr<ScriptEditor> to_;
};

}  // namespace

ScriptFile::ScriptFile(const std::string& path) : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  std::string bytes = read_file(path);
  impl_->sha256 = parsimony::sha256(bytes);
  const std::string why = script::not_torchscript_because(bytes);
  if (!why.empty()) throw errors::not_torchscript(path, why);
  for (const std::string& name : script::extra_files(bytes)) impl_->extra[name] = "";
  std::optional<std::string> beyond;
  try {
    std::istringstream stream(std::move(bytes));
    impl_->module = jit::load(stream, at::Device(at::kCPU), impl_->extra);
    beyond = script::tensor_out_of_bounds(impl_->module);
  } catch (const std::exception& error) {  // libtorch throws of its own and of the library's
    throw errors::not_torchscript(path, script::first_line(error));
  }
  if (beyond) throw errors::not_torchscript(path, "it holds " + *beyond);
}

ScriptFile::~ScriptFile() = default;
ScriptFile::ScriptFile(ScriptFile&&) noexcept = default;
ScriptFile& ScriptFile::operator=(ScriptFile&&) noexcept = default;

const std::string& ScriptFile::path() const { return impl_->path; }

const std::string& ScriptFile::sha256() const { return impl_->sha256; }

const torch::jit::Module& ScriptFile::module() const { return impl_->module; }

const jit::ExtraFilesMap& ScriptFile::extra_files() const { return impl_->extra; }

ScriptGraph& ScriptFile::read(const std::vector<InputSpec>& inputs) {
  impl_->editor.reset();
  impl_->small.reset();
  impl_->script = read_script(impl_->module, inputs);
  return *impl_->script;
}

std::unique_ptr<ModelEditor> ScriptFile::editor() {
  if (!impl_->script) throw errors::not_read(impl_->path);
  if (!impl_->editor) impl_->editor = std::make_shared<ScriptEditor>(*impl_->script);
  return std::make_unique<Forwarding>(impl_->editor);
}

bool ScriptFile::edited() const { return impl_->editor && impl_->editor->edited(); }

const torch::jit::Module& ScriptFile::small() {
  if (!edited()) return impl_->module;
  if (!impl_->small) impl_->small = impl_->editor->finish();
  return *impl_->small;
}

void ScriptFile::write(const std::string& path) {
  if (!edited()) return write_file(path, read_file(impl_->path));
  std::ostringstream stream;
  small().save(stream, impl_->extra);
  write_file(path, stream.view());
}

}  // namespace parsimony::torch_io
