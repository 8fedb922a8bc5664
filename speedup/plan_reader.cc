// Reads and validates a plan: every error is reported with its location in the file.
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "parsimony/base/json_reader.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 48;  // as for any tensor, see element_count

constexpr std::array kDTypes = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                                DType::kInt8,    DType::kInt16,   DType::kInt32,   DType::kInt64,
                                DType::kUInt8,   DType::kUInt16,  DType::kUInt32,  DType::kUInt64,
                                DType::kBool};

/// Reads a list, entry by entry; none where the key is absent.
template <typename Entry>
std::vector<Entry> read_list(JsonReader at, const char* key, Entry (*read)(JsonReader)) {
  std::vector<Entry> entries;
  if (!at.has(key)) return entries;
  entries.reserve(at.at(key).size());
  for (const JsonReader entry : at.at(key).list()) entries.push_back(read(entry));
  return entries;
}

std::vector<int64_t> read_keep(JsonReader at, int64_t size) {
  std::vector<int64_t> keep;
  keep.reserve(at.size());
  for (const JsonReader entry : at.list()) {
    const int64_t index = entry.integer(0, size - 1);
    if (!keep.empty() && index <= keep.back()) {
      entry.fail("found " + std::to_string(index) + " after " + std::to_string(keep.back()) +
                 ", wanted ascending indices");
    }
    keep.push_back(index);
  }
  if (keep.empty()) at.fail("found none, wanted at least one index");
  return keep;
}

PlanBlock read_block(JsonReader at) {
  at.only({"add", "kept_input"});
  return {at.at("add").name(), at.at("kept_input").small(0, 1)};
}

Role read_role(JsonReader at) {
  for (const Role role : {Role::kOut, Role::kIn, Role::kWith}) {
    if (at.text() == name_of(role)) return role;
  }
  at.wanted("\"out\", \"in\" or \"with\"");
}

PlanSlice read_slice(JsonReader at) {
  at.only({"tensor", "axis", "role", "size", "keep"});
  PlanSlice slice;
  slice.tensor = at.at("tensor").name();
  slice.axis = at.at("axis").small(0);
  slice.role = read_role(at.at("role"));
  slice.size = at.at("size").integer(1, kMaxSize);
  slice.keep = read_keep(at.at("keep"), slice.size);
  return slice;
}

PlanGroup read_group(JsonReader at) {
  at.only({"id", "size", "kept", "granularity", "mixes", "slices"});
  PlanGroup group;
  group.id = at.at("id").name();
  group.size = at.at("size").small(1);
  group.kept = at.at("kept").small(0, group.size);
  if (at.has("granularity")) group.granularity = at.at("granularity").name();
  if (at.has("mixes")) group.mixes = at.at("mixes").flag();
  at.at("slices");
  group.slices = read_list(at, "slices", read_slice);
  return group;
}

PlanEnd read_end(JsonReader at) {
  at.only({"input", "output", "axis", "size", "keep"});
  PlanEnd end;
  end.input = at.has("input");
  end.value = at.at(end.input ? "input" : "output").name();
  end.axis = at.at("axis").small(0);
  end.size = at.at("size").integer(1, kMaxSize);
  end.keep = read_keep(at.at("keep"), end.size);
  return end;
}

PlanState read_state(JsonReader at) {
  at.only({"output", "input"});
  return {at.at("output").name(), at.at("input").name()};
}

DType read_dtype(JsonReader at) {
  const std::string name = at.text();
  std::vector<std::string> known;
  for (const DType type : kDTypes) {
    if (name == name_of(type)) return type;
    known.emplace_back(name_of(type));
  }
  at.fail("unknown element type \"" + name + "\"." + did_you_mean(name, known));
}

/// The integers that an element type can hold. uint64 shares its bits with int64.
std::pair<int64_t, int64_t> limits_of(DType type) {
  const bool is_signed = type == DType::kInt8 || type == DType::kInt16 || type == DType::kInt32;
  if (type == DType::kBool) return {0, 1};
  if (size_of(type) == 8) {
    return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  }
  const int64_t range = int64_t{1} << (8 * size_of(type) - (is_signed ? 1 : 0));
  return {is_signed ? -range : 0, range - 1};
}

void read_values(JsonReader at, HostTensor& tensor) {
  const auto [lowest, highest] = limits_of(tensor.dtype);
  for (const JsonReader value : at.list()) {
    if (tensor.floating()) {
      tensor.floats.push_back(value.number());
    } else {
      tensor.ints.push_back(value.integer(lowest, highest));
    }
  }
}

/// A number is an int64 scalar, a list an int64 vector; anything else is an object.
HostTensor read_tensor(JsonReader at) {
  HostTensor tensor;
  if (at.is_list()) {
    read_values(at, tensor);
    tensor.dims = {tensor.count()};
    return tensor;
  }
  if (!at.is_object()) {
    const auto [lowest, highest] = limits_of(DType::kInt64);
    return HostTensor::scalar(at.integer(lowest, highest));
  }
  at.only({"dtype", "dims", "values"});
  tensor.dtype = read_dtype(at.at("dtype"));
  for (const JsonReader dim : at.at("dims").list()) tensor.dims.push_back(dim.integer(0, kMaxSize));
  const JsonReader values = at.at("values");
  read_values(values, tensor);
  const auto fits = [&] {
    try {
      return element_count(tensor.dims) == tensor.count();
    } catch (const ModelError&) {
      return false;
    }
  };
  if (!fits()) {
    values.fail("found " + std::to_string(tensor.count()) + " values, wanted as many as " +
                to_string(tensor.dims) + " has");
  }
  return tensor;
}

PlanInteger read_integer(JsonReader at) {
  at.only({"node", "what", "input", "from", "to"});
  PlanInteger entry;
  entry.node = at.at("node").name();
  entry.what = at.at("what").name();
  if (at.has("input")) entry.input = at.at("input").small(0);
  entry.from = read_tensor(at.at("from"));
  entry.to = read_tensor(at.at("to"));
  if (entry.input < 0 && entry.to.floating() && entry.to.count() != 1) {
    at.at("to").wanted("integers, or one number: it is an attribute");
  }
  return entry;
}

PlanScale read_scale(JsonReader at) {
  at.only({"node", "what", "input", "encodes", "now", "from", "to"});
  PlanScale entry;
  entry.change.node = at.at("node").name();
  entry.change.what = at.at("what").name();
  if (at.has("input")) entry.change.input = at.at("input").small(0);
  entry.encodes = at.at("encodes").text();
  entry.now = at.at("now").text();
  entry.change.from = read_tensor(at.at("from"));
  entry.change.to = read_tensor(at.at("to"));
  const HostTensor& to = entry.change.to;
  if (!to.floating() || to.count() != 1) at.at("to").wanted("one floating point number");
  return entry;
}

PlanCopy read_copy(JsonReader at) {
  at.only({"tensor", "of", "consumer", "input"});
  return {at.at("tensor").name(), at.at("of").name(), at.at("consumer").name(),
          at.at("input").small(0)};
}

PlanZeros read_zeros(JsonReader at) {
  at.only({"tensor", "smallest"});
  return {at.at("tensor").name(), at.at("smallest").integer(0, kMaxSize)};
}

std::string read_fingerprint(JsonReader at) {
  const std::string digest = at.text();
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (digest.size() != 64 || !std::ranges::all_of(digest, is_hex)) {
    at.wanted("64 lower-case hexadecimal digits");
  }
  return digest;
}

Shape read_dims(JsonReader at) {
  Shape dims;
  for (const JsonReader dim : at.list()) dims.push_back(dim.integer(0, kMaxSize));
  try {
    element_count(dims);
  } catch (const ModelError& error) {
    at.fail(error.what());
  }
  return dims;
}

TensorUpdate read_update(JsonReader at) {
  at.only({"tensor", "reason", "dtype", "dims", "sha256"});
  TensorUpdate update{at.at("tensor").name(), at.at("reason").text()};
  if (!at.has("dtype")) return update;
  update.dtype = read_dtype(at.at("dtype"));
  update.dims = read_dims(at.at("dims"));
  update.sha256 = read_fingerprint(at.at("sha256"));
  return update;
}

PlanMask read_mask(JsonReader at) {
  at.only({"tensor", "dims", "sha256"});
  return {at.at("tensor").name(), read_dims(at.at("dims")), {}, read_fingerprint(at.at("sha256"))};
}

Constants read_constants(JsonReader at) {
  const std::string name = at.text();
  if (name != "drop" && name != "exact") at.wanted("\"drop\" or \"exact\"");
  return name == "exact" ? Constants::kExact : Constants::kDrop;
}

UnprunedDim read_unpruned_dims(JsonReader at) {
  at.only({"axis", "reason"});
  return {at.at("axis").name(), at.at("reason").text()};
}

void read_source(JsonReader at, Plan& plan) {
  at.only({"format", "sha256", "inputs"});
  plan.format = at.at("format").name();
  if (at.has("inputs")) {
    for (const JsonReader input : at.at("inputs").list()) plan.inputs.push_back(input.text());
  }
  if (!at.has("sha256")) return;
  plan.sha256 = read_fingerprint(at.at("sha256"));
}

}  // namespace

Plan Plan::from_json(std::string_view text, std::string_view file_name) {
  const JsonDocument document(text, file_name);
  const JsonReader top = document.root();
  if (!top.is_object() || !top.has("parsimony_plan")) {
    top.fail("wanted an object with \"parsimony_plan\": is this a plan?");
  }
  if (top.at("parsimony_plan").small(0) != 1) {
    top.at("parsimony_plan").wanted("1: the plan comes from another version");
  }
  top.only({"parsimony_plan", "source", "blocks", "groups", "interface", "states", "integers",
            "scales", "copies", "zeros", "folds", "constants", "masks", "kept_whole"});
  Plan plan;
  if (top.has("source")) read_source(top.at("source"), plan);
  plan.blocks = read_list(top, "blocks", read_block);
  top.at("groups");
  plan.groups = read_list(top, "groups", read_group);
  plan.ends = read_list(top, "interface", read_end);
  plan.states = read_list(top, "states", read_state);
  plan.integers = read_list(top, "integers", read_integer);
  plan.scales = read_list(top, "scales", read_scale);
  plan.copies = read_list(top, "copies", read_copy);
  plan.zeros = read_list(top, "zeros", read_zeros);
  plan.updates = read_list(top, "folds", read_update);
  if (top.has("constants")) plan.constants = read_constants(top.at("constants"));
  plan.masks = read_list(top, "masks", read_mask);
  plan.unpruned_dims = read_list(top, "kept_whole", read_unpruned_dims);
  return plan;
}

}  // namespace parsimony
