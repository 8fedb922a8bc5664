#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "parsimony/base/files.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/checkpoints/new_checkpoint.h"
#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/exported/archive_impl.h"
#include "parsimony/torch_io/exported/words_impl.h"

namespace parsimony::torch_io::exported {
namespace {

constexpr std::string_view kOldProgram = "serialized_exported_program.json";
constexpr std::string_view kOldWeights = "serialized_state_dict.pt";
constexpr std::string_view kOldConstants = "serialized_constants.pt";
constexpr std::string_view kModels = "/models/";
constexpr std::string_view kJson = ".json";
constexpr auto kBareNumbers = std::to_array<std::string_view>({"-Infinity", "Infinity", "NaN"});

ModelError bad_tensor(std::string_view path, std::string_view name, std::string_view why) {
  return ModelError(path, ": tensor ", in_quotes(name), ": ", why);
}

bool is_new_program(std::string_view entry) {
  const size_t folder = entry.find(kModels);
  return folder != std::string_view::npos && entry.find('/') == folder && entry.ends_with(kJson) &&
         entry.find('/', folder + kModels.size()) == std::string::npos;
}

/// Python writes numbers without a JSON equivalent as bare words; here they are marked strings,
/// which `with_bare_numbers` reverts.
std::string with_quoted_numbers(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  bool in_string = false;
  for (size_t i = 0; i < json.size();) {
    if (in_string && json[i] == '\\') {
      text += json.substr(i, 2);
      i += 2;
      continue;
    }
    if (json[i] == '"') in_string = !in_string;
    const auto* bare = std::ranges::find_if(kBareNumbers, [&](std::string_view word) {
      return !in_string && json.substr(i, word.size()) == word;
    });
    if (bare == kBareNumbers.end()) {
      text += json[i++];
    } else {
      text.append("\"bare ").append(*bare).append("\"");
      i += bare->size();
    }
  }
  return text;
}

std::string with_bare_numbers(std::string json) {
  for (const std::string_view word : kBareNumbers) {
    const std::string quoted = "\"bare " + std::string(word) + "\"";
    for (size_t at = json.find(quoted); at != std::string::npos; at = json.find(quoted, at)) {
      json.replace(at, quoted.size(), word);
    }
  }
  return json;
}

/// Maximum bytes of expanded tensors beyond those stored: repeated elements are materialised.
constexpr int64_t kMostExpanded = int64_t{64} << 20;

at::Tensor tensor_of(const StoredValues& values, const Shape& dims, const TypeRow& type) {
  at::Tensor tensor = at::empty(dims, type.type);
  std::memcpy(tensor.data_ptr(), values.bytes().data(), values.bytes().size());
  return tensor;
}

std::vector<int64_t> fixed_sizes(const JsonReader& list) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> sizes;
  for (const JsonReader size : list.list()) sizes.push_back(size.at("as_int").integer(0, kMost));
  return sizes;
}

PlainTensor plain(const NamedTensor& named) {
  const at::Tensor& tensor = named.tensor;
  const TypeRow* type = type_of(tensor.scalar_type());
  const auto* data = static_cast<const std::byte*>(tensor.data_ptr());
  return {.name = named.name,
          .type = element_type_of_name(type->name),
          .dims = tensor.sizes().vec(),
          .elements = {data, static_cast<size_t>(tensor.numel()) * tensor.element_size()},
          .is_parameter = named.is_parameter,
          .requires_grad = named.is_parameter && at::isFloatingType(tensor.scalar_type())};
}

/// Makes tensors dense and moves them to the CPU; tensors that share memory still do.
std::vector<NamedTensor> dense(std::vector<NamedTensor> tensors) {
  std::map<std::tuple<const void*, std::vector<int64_t>, std::vector<int64_t>>, at::Tensor> known;
  for (NamedTensor& named : tensors) {
    const at::Tensor tensor = named.tensor.detach();
    at::Tensor& own = known[{tensor.data_ptr(), tensor.sizes().vec(), tensor.strides().vec()}];
    if (!own.defined() || tensor.numel() == 0) own = tensor.cpu().contiguous();
    named.tensor = own;
  }
  return tensors;
}

nlohmann::ordered_json as_integers(at::IntArrayRef values) {
  auto list = nlohmann::ordered_json::array();
  for (const int64_t value : values) list.push_back({{"as_int", value}});
  return list;
}

}  // namespace

bool is_exported(const std::vector<std::string>& entries) {
  return std::ranges::any_of(entries, [](const std::string& entry) {
    return entry == kOldProgram || is_new_program(entry);
  });
}

bool Archive::Group::holds(const std::string& name) const {
  return std::ranges::find(names, name) != names.end();
}

Archive::Archive(const std::string& path) : path_(path), file_(path), zip_(file_.bytes(), path) {
  find_entries();
  program_ = with_quoted_numbers(zip_.content(*program_entry_));
  for (Group* group : {&weights_, &constants_}) {
    if (group->list != nullptr) read_list(*group);
    if (group->pickle != nullptr) read_pickle(*group);
  }
}

std::vector<std::string> Archive::names() const {
  std::vector<std::string> names = weights_.names;
  names.insert(names.end(), constants_.names.begin(), constants_.names.end());
  return names;
}

void Archive::find_entries() {
  for (const ZipEntry& entry : zip_.entries()) {
    if (entry.name != kOldProgram && !is_new_program(entry.name)) continue;
    if (program_entry_ != nullptr)
      throw errors::not_exported(path_, "it contains several programs");
    program_entry_ = &entry;
  }
  if (program_entry_ == nullptr) throw errors::not_exported(path_, "it contains none");
  const std::string& name = program_entry_->name;
  if (name != kOldProgram) folder_ = name.substr(0, name.find('/') + 1);
  const ZipEntry* order = zip_.find(folder_ + "byteorder");
  if (order != nullptr && zip_.content(*order) == "big") {
    throw errors::not_exported(path_, "its tensors are big-endian");
  }
  weights_ = group("weights", kOldWeights);
  constants_ = group("constants", kOldConstants);
}

Archive::Group Archive::group(const std::string& kind, std::string_view old_entry) const {
  if (folder_.empty()) return {.folder = "", .pickle = zip_.find(old_entry)};
  const std::string& program = program_entry_->name;
  const size_t begin = folder_.size() - 1 + kModels.size();
  const std::string model = program.substr(begin, program.size() - begin - kJson.size());
  const std::string folder = folder_ + "data/" + kind + "/";
  return {.folder = folder,
          .pickle = zip_.find(folder + model + ".pt"),
          .list = zip_.find(folder + model + "_" + kind + "_config.json")};
}

void Archive::read_pickle(Group& group) {
  const std::string name = path_ + ": " + group.pickle->name;
  const auto checkpoint = open_checkpoint(zip_.content(*group.pickle), name);
  std::map<std::tuple<StorageId, int64_t, Shape, std::vector<int64_t>>, at::Tensor> known;
  for (const TensorId id : checkpoint->tensors().ids()) {
    const StoredTensor& stored = checkpoint->tensors()[id];
    const TypeRow* type = type_of_name(stored.type->name);
    if (stored.path.size() != 1 || type == nullptr) continue;  // not read by programs
    at::Tensor& tensor = known[{stored.storage, stored.offset, stored.dims, stored.strides}];
    if (!tensor.defined()) tensor = tensor_of(checkpoint->values(id), stored.dims, *type);
    tensors_[stored.path.front()] = tensor;
    group.names.push_back(stored.path.front());
  }
}

void Archive::read_list(Group& group) {
  const JsonDocument document(zip_.content(*group.list), path_ + ": " + group.list->name,
                              throw_as<ModelError>);
  std::map<std::string, at::Tensor> known;
  for (const JsonReader entry : document.root().at("config").members()) {
    const std::string name(entry.own_key());
    const auto meta = entry.find("tensor_meta");
    if (!meta || !meta->is_object()) continue;  // not a tensor
    const std::string file = entry.at("path_name").text();
    const ZipEntry* data = zip_.find(group.folder + file);
    if (data == nullptr) throw bad_tensor(path_, name, "the archive has no " + file);
    const std::string_view bytes = zip_.content(*data);
    at::Tensor& tensor = known[file + " " + meta->json()];
    if (!tensor.defined() && entry.at("use_pickle").flag()) {
      throw bad_tensor(path_, name, "it is pickled, so it is not a plain tensor");
    }
    if (!tensor.defined()) tensor = read_raw(name, bytes, meta->json());
    tensors_[name] = tensor;
    group.names.push_back(name);
  }
}

at::Tensor Archive::read_raw(const std::string& name, std::string_view bytes,
                             const std::string& meta) {
  const JsonDocument document(meta, path_ + ": " + name, throw_as<ModelError>);
  const JsonReader root = document.root();
  const TypeRow* type = type_of_code(root.at("dtype").count());
  if (type == nullptr) throw bad_tensor(path_, name, "this libtorch does not have its type");
  const StoredTensor stored{.path = {name},
                            .type = element_type_of_name(type->name),
                            .dims = fixed_sizes(root.at("sizes")),
                            .strides = fixed_sizes(root.at("strides")),
                            .offset = root.at("storage_offset").at("as_int").count()};
  const auto most = (static_cast<int64_t>(bytes.size()) + kMostExpanded) / stored.type->bytes;
  if (stored.count() > most) throw bad_tensor(path_, name, "it has too many elements");
  return tensor_of(values_in(stored, bytes, path_), stored.dims, *type);
}

void Archive::write(const std::string& path, const std::string& program,
                    const std::vector<NamedTensor>& weights,
                    const std::vector<NamedTensor>& constants) const {
  NewFile file(path);
  ZipWriter zip(file);
  std::set<const ZipEntry*> written{program_entry_};
  const auto write = [&](const Group& group, const std::vector<NamedTensor>& tensors) {
    if (group.pickle == nullptr && group.list == nullptr) return;
    if (tensors.empty() && group.names.empty()) return;  // unchanged
    written.insert({group.pickle, group.list});
    for (const ZipEntry& entry : zip_.entries()) {
      if (group.list != nullptr && entry.name.starts_with(group.folder)) written.insert(&entry);
    }
    write_group(zip, group, dense(tensors));
  };
  write(weights_, weights);
  write(constants_, constants);
  for (const ZipEntry& entry : zip_.entries()) {
    if (&entry == program_entry_) zip.add(entry.name, with_bare_numbers(program));
    if (!written.contains(&entry)) zip.add(entry.name, zip_.content(entry));
  }
  zip.finish();
  file.commit();
}

void Archive::write_group(ZipWriter& zip, const Group& group,
                          const std::vector<NamedTensor>& tensors) const {
  if (group.list != nullptr) return write_list(zip, group, tensors);
  const TemporaryFolder folder;
  const std::string path = folder.path() / "tensors.pt";
  std::vector<PlainTensor> all;
  for (const NamedTensor& tensor : tensors) all.push_back(plain(tensor));
  write_new_checkpoint(path, all);
  const MappedFile file(path);
  zip.add(group.pickle->name, file.bytes());
}

void Archive::write_list(ZipWriter& zip, const Group& group,
                         const std::vector<NamedTensor>& tensors) const {
  auto list = nlohmann::ordered_json::parse(zip_.content(*group.list));
  auto& config = list["config"];
  const auto before = std::exchange(config, nlohmann::ordered_json::object());
  const std::string stem = group.folder.ends_with("/weights/") ? "weight_" : "tensor_";
  std::map<const void*, std::string> files;
  for (const NamedTensor& named : tensors) {
    const at::Tensor& tensor = named.tensor;
    std::string& file = files[tensor.numel() == 0 ? &named : tensor.data_ptr()];
    if (file.empty()) {
      file = stem + std::to_string(files.size() - 1);
      const PlainTensor bytes = plain(named);
      zip.add(group.folder + file,
              {reinterpret_cast<const char*>(bytes.elements.data()), bytes.elements.size()});
    }
    nlohmann::ordered_json& entry = config[named.name];
    if (before.contains(named.name)) {
      entry = before[named.name];
    } else {
      entry = {{"path_name", ""}, {"is_param", named.is_parameter}, {"use_pickle", false}};
      entry["tensor_meta"] = {{"requires_grad", named.is_parameter},
                              {"device", {{"type", "cpu"}, {"index", nullptr}}},
                              {"layout", 7}};
    }
    entry["path_name"] = file;
    auto& meta = entry["tensor_meta"];
    meta["dtype"] = type_of(tensor.scalar_type())->code;
    meta["sizes"] = as_integers(tensor.sizes());
    meta["strides"] = as_integers(tensor.strides());
    meta["storage_offset"] = {{"as_int", 0}};
  }
  for (const auto& [name, entry] : before.items()) {  // objects other than tensors
    if (group.holds(name)) continue;
    config[name] = entry;
    const std::string file = entry.value("path_name", "");
    const ZipEntry* data = zip_.find(group.folder + file);
    if (data != nullptr) zip.add(data->name, zip_.content(*data));
  }
  zip.add(group.list->name, list.dump());
}

}  // namespace parsimony::torch_io::exported
