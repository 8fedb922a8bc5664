#include "parsimony/engines/onnx_runtime.h"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "parsimony/engines/element_types_impl.h"
#include "parsimony/engines/errors.h"
#include "parsimony/engines/ort_api_impl.h"

namespace parsimony::runtime {
namespace {

template <typename Handle>
using Owned = std::unique_ptr<Handle, void (*)(Handle*)>;

/// Refuses what the library refused, in its own words.
void check(const ort::Api& api, ort::Status* status) {
  if (status == nullptr) return;
  const Owned<ort::Status> owned(status, api.release_status);
  throw errors::refused(api.get_error_message(status));
}

std::string file_of(const void* symbol, const std::string& otherwise) {
  Dl_info info{};
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return otherwise;
  return info.dli_fname;
}

}  // namespace

struct OnnxRuntime::Library {
  std::string path;
  std::string version;
  const ort::Api* api = nullptr;
  ort::Allocator* allocator = nullptr;  // lives as long as the process
  Owned<ort::Env> env{nullptr, nullptr};
};

namespace {

class Bound final : public BoundRun {
 public:
  Bound(const ort::Api& api, ort::Session* session, std::vector<std::string> input_names,
        const std::vector<std::string>& output_names)
      : api_(api), session_(session), input_names_(std::move(input_names)) {
    for (const std::string& name : input_names_) inputs_of_run_.push_back(name.c_str());
    for (const std::string& name : output_names) outputs_of_run_.push_back(name.c_str());
  }
  ~Bound() override {
    forget_outputs();
    for (ort::Value* value : inputs_) api_.release_value(value);
  }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  void add_input(ort::Allocator* allocator, const TensorBytes& input) {
    const auto type = code_of(input.dtype);
    if (!type) throw errors::no_such_type(input.name, name_of(input.dtype));
    ort::Value* value = nullptr;
    check(api_, api_.create_tensor(allocator, input.dims.data(), input.dims.size(), *type, &value));
    inputs_.push_back(value);
    void* data = nullptr;
    check(api_, api_.tensor_data(value, &data));
    if (!input.bytes.empty()) std::memcpy(data, input.bytes.data(), input.bytes.size());
  }

  void run() override {
    forget_outputs();
    outputs_.resize(outputs_of_run_.size(), nullptr);
    check(api_, api_.run(session_, nullptr, inputs_of_run_.data(), inputs_.data(), inputs_.size(),
                         outputs_of_run_.data(), outputs_of_run_.size(), outputs_.data()));
  }

  std::vector<TensorBytes> outputs() override {
    std::vector<TensorBytes> result;
    for (size_t o = 0; o < outputs_.size(); ++o) {
      result.push_back(copy_of(outputs_[o], outputs_of_run_[o]));
    }
    return result;
  }

 private:
  void forget_outputs() {
    for (ort::Value* value : outputs_) {
      if (value != nullptr) api_.release_value(value);
    }
    outputs_.clear();
  }

  TensorBytes copy_of(ort::Value* value, const char* name) const {
    int is_tensor = 0;
    if (value != nullptr) check(api_, api_.is_tensor(value, &is_tensor));
    if (is_tensor == 0) throw errors::no_tensor(name);
    ort::TensorInfo* made = nullptr;
    check(api_, api_.tensor_info(value, &made));
    const Owned<ort::TensorInfo> info(made, api_.release_tensor_info);
    int type = 0;
    size_t rank = 0;
    check(api_, api_.element_type(info.get(), &type));
    check(api_, api_.rank(info.get(), &rank));
    TensorBytes copy;
    copy.name = name;
    copy.dtype = dtype_of(type);
    copy.dims.resize(rank);
    check(api_, api_.dimensions(info.get(), copy.dims.data(), rank));
    if (size_of(copy.dtype) == 0) throw errors::no_such_type(name, name_of(copy.dtype));
    void* data = nullptr;
    check(api_, api_.tensor_data(value, &data));
    copy.bytes.resize(element_count(copy.dims) * size_of(copy.dtype));
    if (!copy.bytes.empty()) std::memcpy(copy.bytes.data(), data, copy.bytes.size());
    return copy;
  }

  const ort::Api& api_;
  ort::Session* session_;
  std::vector<std::string> input_names_;
  std::vector<const char*> inputs_of_run_;
  std::vector<const char*> outputs_of_run_;
  std::vector<ort::Value*> inputs_;
  std::vector<ort::Value*> outputs_;
};

/// `library` is kept until the session is gone.
template <typename Library>
class Session final : public Executable {
 public:
  Session(std::shared_ptr<const Library> library, Owned<ort::Session> session)
      : library_(std::move(library)), session_(std::move(session)) {
    const ort::Api& api = *library_->api;
    size_t count = 0;
    check(api, api.session_output_count(session_.get(), &count));
    for (size_t o = 0; o < count; ++o) {
      char* name = nullptr;
      check(api, api.session_output_name(session_.get(), o, library_->allocator, &name));
      output_names_.emplace_back(name);
      check(api, api.allocator_free(library_->allocator, name));
    }
  }

  std::unique_ptr<BoundRun> bind(const std::vector<TensorBytes>& inputs) override {
    std::vector<std::string> names;
    for (const TensorBytes& input : inputs) names.push_back(input.name);
    auto bound =
        std::make_unique<Bound>(*library_->api, session_.get(), std::move(names), output_names_);
    for (const TensorBytes& input : inputs) bound->add_input(library_->allocator, input);
    return bound;
  }

 private:
  std::shared_ptr<const Library> library_;
  Owned<ort::Session> session_;
  std::vector<std::string> output_names_;
};

Owned<ort::SessionOptions> session_options(const ort::Api& api,
                                           const OnnxRuntime::Options& options) {
  ort::SessionOptions* made = nullptr;
  check(api, api.create_session_options(&made));
  Owned<ort::SessionOptions> owned(made, api.release_session_options);
  check(api, api.set_intra_op_threads(made, options.threads));
  // Its threads wait busily for the next operator; between two runs that would cost whoever runs
  // then. Versions that do not know the entry ignore it.
  check(api, api.add_config_entry(made, "session.force_spinning_stop", "1"));
  return owned;
}

using Create = std::function<ort::Status*(const ort::SessionOptions*, ort::Session**)>;

template <typename Library>
std::unique_ptr<Executable> session_of(const std::shared_ptr<const Library>& library,
                                       const OnnxRuntime::Options& options, const Create& create) {
  const ort::Api& api = *library->api;
  const auto settings = session_options(api, options);
  ort::Session* made = nullptr;
  check(api, create(settings.get(), &made));
  return std::make_unique<Session<Library>>(library,
                                            Owned<ort::Session>(made, api.release_session));
}

}  // namespace

OnnxRuntime::OnnxRuntime(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw errors::no_library(path, dlerror());
  void* symbol = dlsym(handle, ort::kApiBaseSymbol);
  if (symbol == nullptr) throw errors::not_onnx_runtime(path, ort::kApiBaseSymbol);
  const ort::ApiBase* base = reinterpret_cast<const ort::ApiBase* (*)()>(symbol)();
  auto library = std::make_shared<Library>();
  library->path = file_of(symbol, path);
  library->version = base->get_version();
  library->api = base->get_api(ort::kApiVersion);
  if (library->api == nullptr) {
    throw errors::too_old(library->path, library->version, ort::kApiVersion);
  }
  const ort::Api& api = *library->api;
  ort::Env* env = nullptr;
  check(api, api.create_env(ort::kSilent, "parsimony", &env));
  library->env = Owned<ort::Env>(env, api.release_env);
  check(api, api.default_allocator(&library->allocator));
  library_ = std::move(library);
}

const std::string& OnnxRuntime::path() const { return library_->path; }

const std::string& OnnxRuntime::version() const { return library_->version; }

std::unique_ptr<Executable> OnnxRuntime::open(const std::string& path,
                                              const Options& options) const {
  return session_of(
      library_, options, [&](const ort::SessionOptions* settings, ort::Session** made) {
        return library_->api->create_session(library_->env.get(), path.c_str(), settings, made);
      });
}

std::unique_ptr<Executable> OnnxRuntime::open_bytes(std::string_view model,
                                                    const Options& options) const {
  return session_of(library_, options,
                    [&](const ort::SessionOptions* settings, ort::Session** made) {
                      return library_->api->create_session_from_array(
                          library_->env.get(), model.data(), model.size(), settings, made);
                    });
}

}  // namespace parsimony::runtime
