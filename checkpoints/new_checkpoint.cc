#include "parsimony/checkpoints/new_checkpoint.h"

#include <absl/container/flat_hash_map.h>

#include <initializer_list>
#include <limits>
#include <string_view>

#include "parsimony/base/files.h"
#include "parsimony/checkpoints/formats_impl.h"
#include "parsimony/checkpoints/pickle_opcodes_impl.h"
#include "parsimony/checkpoints/zip.h"

namespace parsimony {
namespace {

constexpr unsigned char kProtocol = 2;
constexpr std::string_view kUntyped = "UntypedStorage";

template <typename T>
void append_bytes(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

/// A program of protocol 2 that builds the dictionary. It keeps no memo: each part is made anew.
/// @source Lib/pickle.py of CPython, torch/_utils.py
class Program {
 public:
  Program() { ops({pickle::kProto, kProtocol, pickle::kEmptyDict, pickle::kMark}); }

  void add(const PlainTensor& tensor, const std::string& storage) {
    text(tensor.name);
    if (tensor.is_parameter) {
      global("torch._utils", "_rebuild_parameter");
      ops({pickle::kMark});
    }
    view(tensor, storage);
    if (!tensor.is_parameter) return;
    flag(tensor.requires_grad);
    no_hooks();
    ops({pickle::kTupleOfMark, pickle::kReduce});
  }

  std::string finish() {
    ops({pickle::kSetItems, pickle::kStop});
    return code_;
  }

 private:
  void view(const PlainTensor& tensor, const std::string& storage) {
    global("torch._utils", "_rebuild_tensor_v2");
    ops({pickle::kMark, pickle::kMark});
    text("storage");
    const std::string_view type = tensor.type->storage.empty() ? kUntyped : tensor.type->storage;
    global("torch", type);
    text(storage);
    text("cpu");
    integer(static_cast<int64_t>(tensor.elements.size()) / tensor.type->bytes);
    ops({pickle::kTupleOfMark, pickle::kBinPersId});
    integer(0);
    integers(tensor.dims);
    integers(dense_strides(tensor.dims));
    flag(!tensor.is_parameter && tensor.requires_grad);
    no_hooks();
    ops({pickle::kTupleOfMark, pickle::kReduce});
  }

  void global(std::string_view module, std::string_view name) {
    ops({pickle::kGlobalText});
    code_.append(module).append("\n").append(name).append("\n");
  }
  void text(std::string_view value) {
    ops({pickle::kBinUnicode});
    append_bytes(code_, static_cast<uint32_t>(value.size()));
    code_ += value;
  }
  void flag(bool value) { ops({value ? pickle::kNewTrue : pickle::kNewFalse}); }
  void integer(int64_t value) {
    if (value >= 0 && value <= std::numeric_limits<int32_t>::max()) {
      ops({pickle::kBinInt});
      return append_bytes(code_, static_cast<int32_t>(value));
    }
    ops({pickle::kLong1, sizeof(value)});
    append_bytes(code_, value);
  }
  void integers(const std::vector<int64_t>& values) {
    ops({pickle::kMark});
    for (const int64_t value : values) integer(value);
    ops({pickle::kTupleOfMark});
  }
  void no_hooks() {
    global("collections", "OrderedDict");
    ops({pickle::kEmptyTuple, pickle::kReduce});
  }
  void ops(std::initializer_list<unsigned char> opcodes) {
    for (const unsigned char opcode : opcodes) code_ += static_cast<char>(opcode);
  }

  std::string code_;
};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void write_new_checkpoint(const std::string& path, std::span<const PlainTensor> tensors) {
  const std::string folder = "archive/";
  absl::flat_hash_map<std::pair<const std::byte*, size_t>, std::string> storages;
  std::vector<const PlainTensor*> stored;
  Program program;
  for (const PlainTensor& tensor : tensors) {
    const std::string next = std::to_string(stored.size());
    const std::pair elements(tensor.elements.data(), tensor.elements.size());
    const bool shares = !tensor.elements.empty() && storages.contains(elements);
    const std::string key = shares ? storages.at(elements) : next;
    if (!shares) {
      storages.emplace(elements, key);
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
