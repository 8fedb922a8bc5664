#include "parsimony/engines/onnx_runtime.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/base/parse.h"
#include "parsimony/engines/errors.h"
#include "parsimony/engines/ort_api_impl.h"

namespace parsimony::runtime {
namespace {

/// The library does not have the execution provider; `known` are those that it has.
UnsupportedError no_provider(std::string_view provider, std::string_view version,
                             std::span<const std::string> known) {
  std::string names;
  for (size_t i = 0; i < known.size(); ++i) names += (i == 0 ? "" : ", ") + known[i];
  return UnsupportedError("--provider: ONNX Runtime ", version, " has no execution provider ",
                          in_quotes(provider), "; it has ", names);
}

template <typename Handle>
using Owned = std::unique_ptr<Handle, void (*)(Handle*)>;

/// Throws the library's error message, if there is one.
void check(const ort::Api& api, ort::Status* status) {
  if (status == nullptr) return;
  const Owned<ort::Status> owned(status, api.release_status);
  throw UnsupportedError("ONNX Runtime: ", api.get_error_message(status));
}

/// 20 of "1.20.1".
int minor_version(std::string_view version) {
  const size_t begin = version.find('.') + 1;
  return number_of<int>(version.substr(begin, version.find('.', begin) - begin)).value_or(0);
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
  void* handle = nullptr;
  const ort::ApiBase* base = nullptr;
  const ort::Api* api = nullptr;
  ort::Allocator* allocator = nullptr;  // lives as long as the process
  Owned<ort::Env> env{nullptr, nullptr};
};

namespace {

using OwnedValue = Owned<ort::Value>;

OwnedValue value_of(const ort::Api& api, ort::Allocator* allocator, const TensorBytes& tensor) {
  if (size_of(tensor.dtype) == 0) throw errors::no_such_type(tensor.name, name_of(tensor.dtype));
  const int type = onnx_number(tensor.dtype);
  ort::Value* made = nullptr;
  check(api, api.create_tensor(allocator, tensor.dims.data(), tensor.dims.size(), type, &made));
  OwnedValue value(made, api.release_value);
  void* data = nullptr;
  check(api, api.tensor_data(made, &data));
  if (!tensor.bytes.empty()) std::memcpy(data, tensor.bytes.data(), tensor.bytes.size());
  return value;
}

/// Returns name, type and dims of an output. @param name  of the output
TensorBytes type_of(const ort::Api& api, const ort::Value* value, const std::string& name) {
  int is_tensor = 0;
  if (value != nullptr) check(api, api.is_tensor(value, &is_tensor));
  if (is_tensor == 0) throw UnsupportedError("output ", in_quotes(name), " is not a tensor");
  ort::TensorInfo* made = nullptr;
  check(api, api.tensor_info(value, &made));
  const Owned<ort::TensorInfo> info(made, api.release_tensor_info);
  int type = 0;
  size_t rank = 0;
  check(api, api.element_type(info.get(), &type));
  check(api, api.rank(info.get(), &rank));
  TensorBytes tensor;
  tensor.name = name;
  tensor.dtype = dtype_of_onnx(type);
  tensor.dims.resize(rank);
  check(api, api.dimensions(info.get(), tensor.dims.data(), rank));
  if (size_of(tensor.dtype) == 0) throw errors::no_such_type(name, name_of(tensor.dtype));
  return tensor;
}

TensorBytes copy_of(const ort::Api& api, ort::Value* value, const std::string& name) {
  TensorBytes copy = type_of(api, value, name);
  void* data = nullptr;
  check(api, api.tensor_data(value, &data));
  copy.bytes.resize(element_count(copy.dims) * size_of(copy.dtype));
  if (!copy.bytes.empty()) std::memcpy(copy.bytes.data(), data, copy.bytes.size());
  return copy;
}

/// A value in the library's memory, which keeps the library loaded.
template <typename Library>
class RuntimeValue final : public EngineTensor {
 public:
  RuntimeValue(std::shared_ptr<const Library> library, OwnedValue value, const std::string& name)
      : library_(std::move(library)),
        value_(std::move(value)),
        type_(type_of(*library_->api, value_.get(), name)) {}

  DType dtype() const override { return type_.dtype; }
  Shape dims() const override { return type_.dims; }
  TensorBytes to_host() const override { return copy_of(*library_->api, value_.get(), {}); }

  const ort::Value* get() const { return value_.get(); }

 private:
  std::shared_ptr<const Library> library_;
  OwnedValue value_;
  TensorBytes type_;  ///< without elements
};

/// Returns the outputs of a session for these inputs.
std::vector<OwnedValue> outputs_of(const ort::Api& api, ort::Session* session,
                                   const std::vector<std::string>& input_names,
                                   const std::vector<const ort::Value*>& inputs,
                                   const std::vector<std::string>& output_names) {
  const auto texts_of = [](const std::vector<std::string>& names) {
    std::vector<const char*> texts;
    for (const std::string& name : names) texts.push_back(name.c_str());
    return texts;
  };
  std::vector<ort::Value*> found(output_names.size(), nullptr);
  check(api, api.run(session, nullptr, texts_of(input_names).data(), inputs.data(), inputs.size(),
                     texts_of(output_names).data(), output_names.size(), found.data()));
  std::vector<OwnedValue> outputs;
  for (ort::Value* value : found) outputs.emplace_back(value, api.release_value);
  return outputs;
}

/// The inputs of a session in memory of the library, and its outputs.
class Bound {
 public:
  Bound(const ort::Api& api, ort::Session* session, ort::Allocator* allocator,
        const TensorList& inputs, const std::vector<std::string>& output_names)
      : api_(api), session_(session), output_names_(output_names) {
    for (const TensorBytes& input : inputs) {
      input_names_.push_back(input.name);
      owned_.push_back(value_of(api, allocator, input));
      inputs_.push_back(owned_.back().get());
    }
  }

  void compute() {
    outputs_.clear();
    outputs_ = outputs_of(api_, session_, input_names_, inputs_, output_names_);
  }

  TensorList outputs() const {
    TensorList result;
    for (size_t o = 0; o < outputs_.size(); ++o) {
      result.push_back(copy_of(api_, outputs_[o].get(), output_names_[o]));
    }
    return result;
  }

 private:
  const ort::Api& api_;
  ort::Session* session_;
  std::vector<std::string> input_names_;
  const std::vector<std::string>& output_names_;
  std::vector<OwnedValue> owned_;
  std::vector<const ort::Value*> inputs_;
  std::vector<OwnedValue> outputs_;
};

/// Returns the peak of a session's arena, which does not contain weights: see session_options().
template <typename Library>
std::optional<int64_t> arena_peak(const Library& library, const ort::Session* session) {
  if (minor_version(library.version) < int{ort::kStatisticsVersion}) return {};
  const auto& api = *library.base->get_api(ort::kStatisticsVersion);
  ort::MemoryInfo* made = nullptr;
  check(api, api.create_cpu_memory_info(ort::kArena, ort::kDefaultMemory, &made));
  const Owned<ort::MemoryInfo> info(made, api.release_memory_info);
  ort::Allocator* found = nullptr;
  check(api, api.create_allocator(session, info.get(), &found));
  const Owned<ort::Allocator> allocator(found, api.release_allocator);
  ort::Pairs* counted = nullptr;
  check(api, api.allocator_statistics(allocator.get(), &counted));
  const Owned<ort::Pairs> statistics(counted, api.release_pairs);
  const char* peak = api.pair_value(statistics.get(), "MaxInUse");
  return peak == nullptr ? std::nullopt : number_of<int64_t>(peak);
}

/// Opens the model with or without the library's optimisations.
template <typename Library>
using Open = std::function<Owned<ort::Session>(const Library&, bool optimised)>;

/// A network in a session; `library` is kept loaded until the session is released.
template <typename Library>
class RuntimeNetwork final : public Network {
 public:
  RuntimeNetwork(std::shared_ptr<const Library> library, Open<Library> open)
      : library_(std::move(library)), open_(std::move(open)), session_(open_(*library_, true)) {
    const ort::Api& api = *library_->api;
    input_names_ = names_by(api.session_input_count, api.session_input_name);
    output_names_ = names_by(api.session_output_count, api.session_output_name);
  }

  std::vector<TensorList> run(const std::vector<TensorList>& inputs,
                              const RunOptions& options) override {
    if (options.alternate_kernels && !plain_) plain_ = open_(*library_, false);
    std::vector<TensorList> outputs;
    for (const TensorList& one : inputs) {
      const auto bound = bound_to(options.alternate_kernels ? plain_.get() : session_.get(), one);
      bound->compute();
      outputs.push_back(bound->outputs());
    }
    return outputs;
  }

  EngineValues forward(const EngineValues& inputs) override {
    const ort::Api& api = *library_->api;
    std::vector<OwnedValue> owned;
    std::vector<const ort::Value*> taken;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (const auto* own = dynamic_cast<const RuntimeValue<Library>*>(inputs[i].get())) {
        taken.push_back(own->get());
        continue;
      }
      TensorBytes tensor = inputs[i]->to_host();
      tensor.name = input_names_.at(i);
      owned.push_back(value_of(api, library_->allocator, tensor));
      taken.push_back(owned.back().get());
    }
    std::vector<OwnedValue> found =
        outputs_of(api, session_.get(), input_names_, taken, output_names_);
    EngineValues outputs;
    for (size_t o = 0; o < found.size(); ++o) {
      outputs.push_back(std::make_shared<const RuntimeValue<Library>>(library_, std::move(found[o]),
                                                                      output_names_[o]));
    }
    return outputs;
  }

  void bind(const TensorList& inputs) override { bound_ = bound_to(session_.get(), inputs); }
  void compute() override { bound_->compute(); }
  TensorList outputs() override { return bound_ ? bound_->outputs() : TensorList(); }
  std::optional<int64_t> peak_bytes() override { return arena_peak(*library_, session_.get()); }

 private:
  std::unique_ptr<Bound> bound_to(ort::Session* session, const TensorList& inputs) const {
    return std::make_unique<Bound>(*library_->api, session, library_->allocator, inputs,
                                   output_names_);
  }

  template <typename Count, typename Name>
  std::vector<std::string> names_by(const Count& count_of, const Name& name_at) const {
    const ort::Api& api = *library_->api;
    size_t count = 0;
    check(api, count_of(session_.get(), &count));
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
      char* name = nullptr;
      check(api, name_at(session_.get(), i, library_->allocator, &name));
      names.emplace_back(name);
      check(api, api.allocator_free(library_->allocator, name));
    }
    return names;
  }

  std::shared_ptr<const Library> library_;
  Open<Library> open_;
  Owned<ort::Session> session_;
  Owned<ort::Session> plain_{nullptr, nullptr};  ///< without optimisations
  std::vector<std::string> input_names_;
  std::vector<std::string> output_names_;
  std::unique_ptr<Bound> bound_;  ///< of `session_`
};

/// The symbol that ONNX Runtime's own loader looks up.
/// @source https://onnxruntime.ai/docs/reference/operators/add-custom-op.html
constexpr const char* kRegister = "RegisterCustomOps";

/// A loaded library of custom operators, which is never unloaded.
struct KernelLibrary {
  std::string path;
  ort::Status* (*add_to)(ort::SessionOptions*, const ort::ApiBase*) = nullptr;
};

std::vector<KernelLibrary>& kernel_libraries() {
  static std::vector<KernelLibrary> libraries;
  return libraries;
}

/// Returns the absolute path of an existing file; the loader would search for a bare name.
std::string for_loader(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) ? std::filesystem::absolute(path).string() : path;
}

/// Adds the user's custom operators.
void add_kernels(const ort::Api& api, const ort::ApiBase* base, ort::SessionOptions* options) {
  for (const KernelLibrary& library : kernel_libraries()) {
    ort::Status* status = library.add_to(options, base);
    if (status == nullptr) continue;
    const Owned<ort::Status> owned(status, api.release_status);
    throw UnsupportedError("--ort-library ", library.path, ": ", api.get_error_message(status));
  }
}

/// The parts of "openvino:device_type=GPU,precision=FP16".
struct Provider {
  std::string name;
  std::vector<std::string> keys;
  std::vector<std::string> values;
};

Provider parse_provider(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  Provider provider{text.substr(0, colon), {}, {}};
  std::istringstream rest(text.substr(std::min(colon + 1, text.size())));
  for (std::string pair; std::getline(rest, pair, ',');) {
    const size_t equals = std::min(pair.find('='), pair.size());
    provider.keys.push_back(pair.substr(0, equals));
    provider.values.push_back(pair.substr(std::min(equals + 1, pair.size())));
  }
  return provider;
}

constexpr std::string_view kProviderSuffix = "ExecutionProvider";

/// Returns the library's providers in its spelling, without their suffix: "CUDA", "Xnnpack".
template <typename Library>
std::vector<std::string> providers_of(const Library& library) {
  char** names = nullptr;
  int count = 0;
  check(*library.api, library.api->available_providers(&names, &count));
  std::vector<std::string> known;
  for (int i = 0; i < count; ++i) {
    std::string name = names[i];
    if (name.ends_with(kProviderSuffix)) name.resize(name.size() - kProviderSuffix.size());
    known.push_back(std::move(name));
  }
  check(*library.api, library.api->release_providers(names, count));
  return known;
}

/// Returns a provider in the library's spelling. @throws UnsupportedError if the library does not
/// have it
template <typename Library>
std::string spelling_of(const Library& library, const std::string& name) {
  const std::vector<std::string> known = providers_of(library);
  const auto alike = [&](const std::string& other) {
    return std::ranges::equal(name, other, {}, ::tolower, ::tolower);
  };
  const auto found = std::ranges::find_if(known, alike);
  if (found == known.end()) throw no_provider(name, library.version, known);
  return *found;
}

/// Appends a provider. GPU builds export a function for each of their providers; the others are
/// appended by name, in capitals since 1.14, recently by their full name as well.
template <typename Library>
void append_provider(const Library& library, ort::SessionOptions* options,
                     const std::string& text) {
  if (text.empty()) return;
  const Provider provider = parse_provider(text);
  const std::string name = spelling_of(library, provider.name);
  if (name == "CPU") return;
  ort::Status* status = nullptr;
  void* symbol = dlsym(library.handle, (ort::kAppendProvider + name).c_str());
  if (symbol != nullptr && provider.keys.empty()) {
    status = reinterpret_cast<ort::AppendProvider>(symbol)(options, 0);
  } else {
    const auto* api = library.base->get_api(ort::kProviderVersion);
    if (api == nullptr) {
      throw UnsupportedError("--provider: ONNX Runtime ", library.version,
                             " does not support it; expected 1.12 or newer");
    }
    std::vector<const char*> keys;
    std::vector<const char*> values;
    for (const std::string& key : provider.keys) keys.push_back(key.c_str());
    for (const std::string& value : provider.values) values.push_back(value.c_str());
    std::string capitals = name;
    std::ranges::transform(capitals, capitals.begin(), ::toupper);
    const auto append = [&](const std::string& spelling) {
      return api->append_provider(options, spelling.c_str(), keys.data(), values.data(),
                                  keys.size());
    };
    status = append(name + std::string(kProviderSuffix));
    if (status != nullptr) {
      const Owned<ort::Status> other(append(capitals), library.api->release_status);
      if (!other) library.api->release_status(std::exchange(status, nullptr));
    }
  }
  if (status == nullptr) return;
  const Owned<ort::Status> owned(status, library.api->release_status);
  throw UnsupportedError("--provider: ", name, ": ", library.api->get_error_message(status));
}

template <typename Library>
Owned<ort::SessionOptions> session_options(const Library& library,
                                           const OnnxRuntime::Options& options, bool optimised) {
  const ort::Api& api = *library.api;
  ort::SessionOptions* made = nullptr;
  check(api, api.create_session_options(&made));
  Owned<ort::SessionOptions> owned(made, api.release_session_options);
  check(api, api.set_intra_op_threads(made, options.threads));
  if (!optimised) check(api, api.set_optimization_level(made, ort::kNoOptimization));
  // Its threads busy-wait for the next operator; between runs that would slow down others. Versions
  // that do not know the entry ignore it.
  check(api, api.add_config_entry(made, "session.force_spinning_stop", "1"));
  // Weights outside of the arena, so that it counts activations only.
  check(api, api.add_config_entry(made, "session.use_device_allocator_for_initializers", "1"));
  if (options.large) {
    // Neither transposed and folded nor packed: such copies are as large as the weights.
    check(api, api.add_config_entry(made, "session.disable_prepacking", "1"));
    check(api, api.add_config_entry(made, "optimization.disable_specified_optimizers",
                                    "ConstantFolding"));
  }
  add_kernels(api, library.base, made);
  append_provider(library, made, options.provider);
  return owned;
}

using Create = std::function<ort::Status*(const ort::SessionOptions*, ort::Session**)>;

template <typename Library>
std::unique_ptr<Network> session_of(const std::shared_ptr<const Library>& library,
                                    const OnnxRuntime::Options& options, Create create) {
  return std::make_unique<RuntimeNetwork<Library>>(
      library, [options, create = std::move(create)](const Library& of, bool optimised) {
        const auto settings = session_options(of, options, optimised);
        ort::Session* made = nullptr;
        // ONNX Runtime checks for a library's domain and adds it without a lock.
        static std::mutex adding_domains;
        std::unique_lock one_at_a_time(adding_domains, std::defer_lock);
        if (has_kernel_libraries()) one_at_a_time.lock();
        check(*of.api, create(settings.get(), &made));
        return Owned<ort::Session>(made, of.api->release_session);
      });
}

}  // namespace

void disable_telemetry() { setenv("ORT_DISABLE_TELEMETRY", "1", /*overwrite=*/0); }

OnnxRuntime::OnnxRuntime(const std::string& path) {
  disable_telemetry();
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw UnsupportedError("ONNX Runtime cannot be loaded from ", path, ": ", dlerror());
  }
  void* symbol = dlsym(handle, ort::kApiBaseSymbol);
  if (symbol == nullptr) {
    throw UnsupportedError(path, " is a library, but not ONNX Runtime: it has no ",
                           ort::kApiBaseSymbol);
  }
  const ort::ApiBase* base = reinterpret_cast<const ort::ApiBase* (*)()>(symbol)();
  auto library = std::make_shared<Library>();
  library->path = file_of(symbol, path);
  library->version = base->get_version();
  library->handle = handle;
  library->base = base;
  library->api = base->get_api(ort::kApiVersion);
  if (library->api == nullptr) {
    throw UnsupportedError(library->path, " is ONNX Runtime ", library->version,
                           ", which does not have version ", ort::kApiVersion,
                           " of its C interface; expected 1.", ort::kApiVersion, ".0 or newer");
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

void OnnxRuntime::check_provider(const std::string& provider) const {
  if (!provider.empty()) spelling_of(*library_, parse_provider(provider).name);
}

std::unique_ptr<Network> OnnxRuntime::open(const std::string& path, const Options& options) const {
  return session_of(
      library_, options,
      [library = library_.get(), path](const ort::SessionOptions* settings, ort::Session** made) {
        return library->api->create_session(library->env.get(), path.c_str(), settings, made);
      });
}

std::unique_ptr<Network> OnnxRuntime::open_bytes(std::string model, const Options& options) const {
  return session_of(library_, options,
                    [library = library_.get(), model = std::move(model)](
                        const ort::SessionOptions* settings, ort::Session** made) {
                      return library->api->create_session_from_array(
                          library->env.get(), model.data(), model.size(), settings, made);
                    });
}

void add_kernel_library(const std::string& path) {
  void* handle = dlopen(for_loader(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw UnsupportedError("--ort-library ", path, " cannot be loaded: ", dlerror());
  }
  void* symbol = dlsym(handle, kRegister);
  if (symbol == nullptr) {
    throw UnsupportedError("--ort-library ", path,
                           " is a library, but not one of custom operators: it has no ", kRegister);
  }
  kernel_libraries().push_back({path, reinterpret_cast<decltype(KernelLibrary::add_to)>(symbol)});
}

bool has_kernel_libraries() { return !kernel_libraries().empty(); }

}  // namespace parsimony::runtime
