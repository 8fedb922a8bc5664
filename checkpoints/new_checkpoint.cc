#include "parsimony/checkpoints/new_checkpoint.h"

#include <absl/container/flat_hash_map.h>

#include <limits>
#include <string_view>

#include "parsimony/base/files.h"
#include "parsimony/checkpoints/zip.h"

namespace parsimony {
namespace {

constexpr std::string_view kUntyped = "UntypedStorage";

template <typename T>
void append_bytes(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

/// A program of protocol 2 that builds the dictionary. It keeps no memo: each part is made anew.
/// @source Lib/pickle.py of CPython, torch/_utils.py
class Program {
 public:
  Program() : code_("\x80\x02}(") {}

  void add(const PlainTensor& tensor, const std::string& storage) {
    text(tensor.name);
    if (tensor.is_parameter) {
      global("torch._utils", "_rebuild_parameter");
      code_ += '(';
    }
    view(tensor, storage);
    if (!tensor.is_parameter) return;
    flag(tensor.requires_grad);
    no_hooks();
    code_ += "tR";
  }

  std::string finish() { return code_ + "u."; }

 private:
  void view(const PlainTensor& tensor, const std::string& storage) {
    global("torch._utils", "_rebuild_tensor_v2");
    code_ += "((";
    text("storage");
    const std::string_view type = tensor.type->storage.empty() ? kUntyped : tensor.type->storage;
    global("torch", type);
    text(storage);
    text("cpu");
    integer(static_cast<int64_t>(tensor.elements.size()) / tensor.type->bytes);
    code_ += "tQ";
    integer(0);
    integers(tensor.dims);
    integers(dense_strides(tensor.dims));
    flag(!tensor.is_parameter && tensor.requires_grad);
    no_hooks();
    code_ += "tR";
  }

  static std::vector<int64_t> dense_strides(const Shape& dims) {
    std::vector<int64_t> strides(dims.size(), 1);
    for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
    return strides;
  }

  void global(std::string_view module, std::string_view name) {
    code_.append("c").append(module).append("\n").append(name).append("\n");
  }
  void text(std::string_view value) {
    code_ += 'X';
    append_bytes(code_, static_cast<uint32_t>(value.size()));
    code_ += value;
  }
  void flag(bool value) { code_ += value ? '\x88' : '\x89'; }
  void integer(int64_t value) {
    if (value >= 0 && value <= std::numeric_limits<int32_t>::max()) {
      code_ += 'J';
      return append_bytes(code_, static_cast<int32_t>(value));
    }
    code_.append("\x8a\x08");
    append_bytes(code_, value);
  }
  void integers(const std::vector<int64_t>& values) {
    code_ += '(';
    for (const int64_t value : values) integer(value);
    code_ += 't';
  }
  void no_hooks() {
    global("collections", "OrderedDict");
    code_ += ")R";
  }

  std::string code_;
};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void write_new_checkpoint(const std::string& path, std::span<const PlainTensor> tensors) {
  const std::string folder = "archive/";
  absl::flat_hash_map<const std::byte*, std::string> storages;
  std::vector<const PlainTensor*> stored;
  Program program;
  for (const PlainTensor& tensor : tensors) {
    const std::string next = std::to_string(stored.size());
    const bool shares = !tensor.elements.empty() && storages.contains(tensor.elements.data());
    const std::string key = shares ? storages.at(tensor.elements.data()) : next;
    if (!shares) {
      storages.emplace(tensor.elements.data(), key);
      stored.push_back(&tensor);
    }
    program.add(tensor, key);
  }
  NewFile file(path);
  ZipWriter zip(file);
  zip.add(folder + "data.pkl", program.finish());
  zip.add(folder + "byteorder", "little");
  for (size_t i = 0; i < stored.size(); ++i) {
    zip.add(folder + "data/" + std::to_string(i), text_of(stored[i]->elements));
  }
  zip.add(folder + "version", "3\n");
  zip.finish();
  file.commit();
}

}  // namespace parsimony
