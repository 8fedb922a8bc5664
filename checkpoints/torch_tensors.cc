#include <algorithm>
#include <array>

#include "parsimony/base/ranges.h"
#include "parsimony/checkpoints/errors.h"
#include "parsimony/checkpoints/formats_impl.h"

namespace parsimony::checkpoints {
namespace {

using pickle::Kind;
using pickle::Object;
using pickle::ObjectId;
using pickle::Part;
using pickle::Pickle;

/// A function that rebuilds a tensor from its arguments.
struct Rebuild {
  std::string_view name;
  enum Form : uint8_t { kView, kInner, kOfType } form;
  size_t least;           ///< arguments
  const char* why_fixed;  ///< null: its shape may change
  int dtype = -1;         ///< index of the argument that is the element type
};

// kView: (storage, offset, size, stride, …); kInner: (tensor, …); kOfType: (function, type,
// arguments, state). @source torch/_utils.py
constexpr auto kRebuilds = std::to_array<Rebuild>({
    {"torch._utils._rebuild_tensor", Rebuild::kView, 4, nullptr},
    {"torch._utils._rebuild_tensor_v2", Rebuild::kView, 4, nullptr},
    {"torch._utils._rebuild_tensor_v3", Rebuild::kView, 7, nullptr, 6},
    {"torch._utils._rebuild_qtensor", Rebuild::kView, 4, "it is quantised"},
    {"torch._utils._rebuild_parameter", Rebuild::kInner, 1, nullptr},
    {"torch._utils._rebuild_parameter_with_state", Rebuild::kInner, 1, nullptr},
    {"torch._tensor._rebuild_from_type_v2", Rebuild::kOfType, 4, nullptr},
});

const Rebuild* rebuild_of(std::string_view name) {
  const auto* found = std::ranges::find(kRebuilds, name, &Rebuild::name);
  return found == kRebuilds.end() ? nullptr : found;
}

/// Finds all tensors, from the root on, without recursion: whoever wrote the file chose the depth.
class Walk {
 public:
  Walk(const Pickle& pickle, std::string_view file)
      : pickle_(pickle), file_(file), seen_(pickle.objects().size()) {}

  PickledTensors run() {
    push(pickle_.root(), -1, "");
    while (!open_.empty()) {
      const int place = open_.back();
      open_.pop_back();
      visit(place);
    }
    fix_bare_storages();
    return std::move(found_);
  }

 private:
  /// A part of the tree on its way to being visited.
  struct Place {
    Part part;
    int above = -1;
    int depth = 0;
    std::string key;
    std::optional<Part> text;  ///< the key of a dictionary that it is, if it is a text
  };

  [[noreturn]] void fail(const Part& part, const std::string& why) const {
    throw errors::bad_pickle(file_, part.span.begin, why);
  }

  void push(const Part& part, int above, std::string key, std::optional<Part> text = {}) {
    places_.push_back(
        {part, above, above < 0 ? 0 : places_[above].depth + 1, std::move(key), text});
    open_.push_back(static_cast<int>(places_.size()) - 1);
  }

  std::vector<std::string> path_to(int place) const {
    std::vector<std::string> path;
    for (; places_[place].above >= 0; place = places_[place].above) {
      path.push_back(places_[place].key);
    }
    std::ranges::reverse(path);
    return path;
  }

  std::string text_of(const Part& part) const {
    const Object& object = pickle_[part];
    switch (object.kind) {
      case Kind::kNone:
        return "None";
      case Kind::kBool:
        return object.integer != 0 ? "True" : "False";
      case Kind::kInteger:
        return std::to_string(object.integer);
      case Kind::kLong:
        return "an integer of " + std::to_string(object.text.size()) + " bytes";
      case Kind::kFloat: {
        std::array<char, 32> digits{};
        std::snprintf(digits.data(), digits.size(), "%.6g", object.number);
        return digits.data();
      }
      case Kind::kText:
        return std::string(object.text);
      case Kind::kBytes:
        return std::to_string(object.text.size()) + " bytes";
      case Kind::kList:
        return "list of " + std::to_string(object.parts.size());
      case Kind::kTuple:
        return "tuple of " + std::to_string(object.parts.size());
      case Kind::kSet:
        return "set of " + std::to_string(object.parts.size());
      case Kind::kDict:
        return "dict of " + std::to_string(object.parts.size() / 2);
      case Kind::kGlobal:
        return std::string(object.text);
      case Kind::kPersistent:
        return "storage";
      case Kind::kCall:
        break;
    }
    const std::string name(pickle_.global_of(part.object));
    if (object.items == ObjectId()) return name.empty() ? "object" : name;
    return name + " of " + std::to_string(pickle_.items_of(part.object).size() / 2);
  }

  void visit(int place) {
    const Part part = places_[place].part;
    const int depth = places_[place].depth;
    const Rebuild* rebuild = rebuild_of(pickle_.global_of(part.object));
    if (pickle_[part].kind == Kind::kCall && rebuild != nullptr && tensor(place, part, *rebuild)) {
      return;
    }
    const bool is_known = seen_[part.object];
    const std::string& key = places_[place].key;
    found_.tree.push_back({depth, key, text_of(part) + (is_known ? ", as above" : ""), {}});
    if (is_known) return;
    const bool is_shared = !pickle_[part].parts.empty() || pickle_[part].kind == Kind::kCall;
    seen_[part.object] = is_shared;
    const size_t first = open_.size();
    children(place, part.object);
    std::reverse(open_.begin() + static_cast<std::ptrdiff_t>(first), open_.end());
  }

  void children(int place, ObjectId id) {
    const Object& object = pickle_[id];
    if (object.kind == Kind::kDict) return dictionary(place, object.parts);
    if (object.kind == Kind::kPersistent) {
      if (object.parts.size() == 1) storage(object.parts.front());
      return;
    }
    if (object.kind != Kind::kCall) return sequence(place, object.parts);
    if (object.parts.size() < 2) return;
    // Arguments, then states; a state's keys are the attributes.
    sequence(place, pickle_[object.parts[1]].parts);
    for (size_t i = 2; i < object.parts.size(); ++i) {
      const ObjectId state = object.parts[i].object;
      const std::span<const Part> items = pickle_.items_of(state);
      items.empty() ? push(object.parts[i], place, "state") : dictionary(place, items);
    }
    if (object.elements != ObjectId()) sequence(place, pickle_[object.elements].parts);
    if (object.items != ObjectId()) dictionary(place, pickle_[object.items].parts);
  }

  void dictionary(int place, std::span<const Part> items) {
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      const bool is_text = pickle_[items[i]].kind == Kind::kText;
      push(items[i + 1], place, text_of(items[i]),
           is_text ? std::optional(items[i]) : std::nullopt);
    }
  }

  void sequence(int place, const std::vector<Part>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) push(parts[i], place, std::to_string(i));
  }

  /// The storage of a persistent id: ("storage", type, key, location, count); kNone for others.
  StorageId storage(const Part& id) {
    const std::vector<Part>& parts = pickle_[id].parts;
    if (parts.size() < 5 || pickle_.text_of(parts[0]) != "storage") return {};
    const std::string_view global = pickle_.global_of(parts[1].object);
    const auto key = pickle_.text_of(parts[2]);
    const auto count = pickle_.integer_of(parts[4]);
    if (!key || !count || *count < 0) fail(id, "a storage has no key or no number of elements");
    const std::string_view name = global.substr(std::min(global.rfind('.') + 1, global.size()));
    const ElementType* type = element_type_of_storage(name);
    if (type == nullptr) return {};  // of a newer PyTorch: kept as it is
    const auto [entry, is_new] = by_key_.try_emplace(std::string(*key), found_.storages.next_id());
    if (is_new) {
      found_.storages.push_back({std::string(*key), type, *count, {}, {}});
      used_.push_back(0);
    }
    NamedStorage& storage = found_.storages[entry->second];
    if (storage.elements * storage.type->bytes != *count * type->bytes) {
      fail(id, "storage " + in_quotes(*key) + " has two sizes");
    }
    storage.counts.push_back(parts[4]);
    if (parts.size() > 5 && pickle_[parts[5]].kind != Kind::kNone) {
      storage.why_fixed = "its storage is a part of another";
    }
    return entry->second;
  }

  /// Notes the tensor. False if the call is none after all.
  bool tensor(int place, Part part, const Rebuild& first) {
    const Rebuild* rebuild = &first;
    std::vector<Part> arguments = pickle_[pickle_[part].parts[1]].parts;
    for (int depth = 0; rebuild->form != Rebuild::kView; ++depth) {
      if (arguments.size() < rebuild->least || depth > 4) return false;
      if (rebuild->form == Rebuild::kOfType) {
        rebuild = rebuild_of(pickle_.global_of(arguments[0].object));
        if (rebuild == nullptr || rebuild->form == Rebuild::kOfType) return false;
        arguments = std::vector<Part>(pickle_[arguments[2]].parts);
        continue;
      }
      const Object& inner = pickle_[arguments[0]];
      rebuild = rebuild_of(pickle_.global_of(arguments[0].object));
      if (inner.kind != Kind::kCall || rebuild == nullptr) return false;
      arguments = std::vector<Part>(pickle_[inner.parts[1]].parts);
    }
    if (arguments.size() < rebuild->least) fail(part, "a tensor has too few arguments");
    const Object& source = pickle_[arguments[0]];
    if (source.kind != Kind::kPersistent || source.parts.size() != 1) return false;
    const StorageId on = storage(source.parts.front());
    if (on == StorageId()) return false;
    StoredTensor tensor{path_to(place),         found_.storages[on].type, integers(arguments[2]),
                        integers(arguments[3]), integer(arguments[1]),    on};
    if (rebuild->why_fixed != nullptr) tensor.why_fixed = rebuild->why_fixed;
    if (rebuild->dtype >= 0) {
      const std::string_view name = pickle_.global_of(arguments[rebuild->dtype].object);
      tensor.type = element_type_of_name(name.substr(std::min(name.rfind('.') + 1, name.size())));
      if (tensor.type == nullptr) return false;  // of a newer PyTorch: kept as it is
    }
    ++used_[on];
    const TensorId id = found_.tensors.next_id();
    found_.tree.push_back({places_[place].depth, places_[place].key,
                           std::string(tensor.type->name) + " " + to_string(tensor.dims), id});
    found_.tensors.push_back(std::move(tensor));
    found_.parts.push_back({arguments[1], arguments[2], arguments[3], part, places_[place].text});
    return true;
  }

  int64_t integer(const Part& part) const {
    const auto value = pickle_.integer_of(part);
    if (!value) fail(part, "expected an integer");
    return *value;
  }

  std::vector<int64_t> integers(const Part& part) const {
    if (pickle_[part].kind != Kind::kTuple) fail(part, "expected a tuple of integers");
    std::vector<int64_t> values;
    for (const Part& value : pickle_[part].parts) values.push_back(integer(value));
    return values;
  }

  /// A storage that is used as such, and not by a tensor alone, stays as it is.
  void fix_bare_storages() {
    for (const StorageId id : found_.storages.ids()) {
      NamedStorage& storage = found_.storages[id];
      if (used_[id] != storage.counts.size()) storage.why_fixed = "its storage is used elsewhere";
    }
    for (StoredTensor& tensor : found_.tensors) {
      const std::string& why = found_.storages[tensor.storage].why_fixed;
      if (tensor.why_fixed.empty()) tensor.why_fixed = why;
    }
  }

  const Pickle& pickle_;
  std::string_view file_;
  IdVector<ObjectId, bool> seen_;
  PickledTensors found_;
  IdVector<StorageId, size_t> used_;
  absl::flat_hash_map<std::string, StorageId> by_key_;
  std::vector<Place> places_;
  std::vector<int> open_;
};

// @source torch/_weights_only_unpickler.py of PyTorch 2.6
constexpr auto kAllowed = std::to_array<std::string_view>({
    "_codecs.encode",
    "builtins.bytearray",
    "builtins.complex",
    "builtins.set",
    "collections.Counter",
    "collections.OrderedDict",
    "torch.Size",
    "torch.Tensor",
    "torch.device",
    "torch.nn.parameter.Parameter",
    "torch.serialization._get_layout",
    "torch._tensor._rebuild_from_type_v2",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor",
    "torch._utils._rebuild_device_tensor_from_numpy",
    "torch._utils._rebuild_meta_tensor_no_storage",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._utils._rebuild_qtensor",
    "torch._utils._rebuild_sparse_tensor",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_wrapper_subclass",
    "torch.per_channel_affine",
    "torch.per_channel_affine_float_qparams",
    "torch.per_channel_symmetric",
    "torch.per_tensor_affine",
    "torch.per_tensor_symmetric",
});

bool is_allowed(std::string_view global) {
  if (contains(kAllowed, global)) return true;
  if (global == "__builtin__.set" || global == "__builtin__.bytearray") return true;  // protocol 2
  constexpr std::string_view kTorch = "torch.";
  if (!global.starts_with(kTorch)) return false;
  std::string_view name = global.substr(kTorch.size());
  if (name.starts_with("storage.")) name.remove_prefix(8);
  return element_type_of_storage(name) != nullptr || element_type_of_name(name) != nullptr;
}

}  // namespace

PickledTensors tensors_of(const Pickle& pickle, std::string_view file) {
  return Walk(pickle, file).run();
}

std::vector<std::string> refused_by_weights_only(const Pickle& pickle) {
  std::vector<std::string> refused;
  if (pickle.protocol() > 3) {  // it lacks the instructions that protocol 4 added
    refused.push_back("pickle protocol " + std::to_string(pickle.protocol()));
  }
  for (const std::string_view global : pickle.globals()) {
    if (!is_allowed(global)) refused.emplace_back(global);
  }
  return refused;
}

}  // namespace parsimony::checkpoints
