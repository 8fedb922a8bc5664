#include "parsimony/programs/exported/archive.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "parsimony/base/files.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/checkpoints/new_checkpoint.h"
#include "parsimony/programs/exported/json_tree_impl.h"

namespace parsimony::programs {
namespace {

constexpr std::string_view kOldProgram = "serialized_exported_program.json";
constexpr std::string_view kOldWeights = "serialized_state_dict.pt";
constexpr std::string_view kOldConstants = "serialized_constants.pt";
constexpr std::string_view kModels = "/models/";
constexpr std::string_view kJson = ".json";
constexpr auto kBareNumbers = std::to_array<std::string_view>({"-Infinity", "Infinity", "NaN"});

/// An element type, by its number in programs. @source torch/_export/serde/schema.py, ScalarType
constexpr auto kTypes = std::to_array<std::string_view>(
    {"", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32",
     "complex64", "complex128", "bool", "bfloat16"});

ModelError not_exported(std::string_view path, std::string_view why) {
  return ModelError(path, ": not a program of torch.export: ", why);
}

ModelError bad_tensor(std::string_view path, std::string_view name, std::string_view why) {
  return ModelError(path, ": tensor ", in_quotes(name), ": ", why);
}

bool is_new_program(std::string_view entry) {
  const size_t folder = entry.find(kModels);
  return folder != std::string_view::npos && entry.find('/') == folder && entry.ends_with(kJson) &&
         entry.find('/', folder + kModels.size()) == std::string::npos;
}

/// Python writes numbers that JSON has no words for as bare words; here they are strings with a
/// mark, which `with_bare_numbers` takes off again.
std::string with_quoted_numbers(std::string_view json) {
  const auto occurs = [&](std::string_view word) { return json.find(word) != json.npos; };
  if (std::ranges::none_of(kBareNumbers, occurs)) return std::string(json);
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

/// A repeated element takes memory for each place where it is seen: so much beyond what is stored.
constexpr int64_t kMostExpanded = int64_t{64} << 20;

std::vector<int64_t> fixed_sizes(const JsonReader& list) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> sizes;
  for (const JsonReader size : list.list()) sizes.push_back(size.at("as_int").integer(0, kMost));
  return sizes;
}

PlainTensor plain(const ArchivedTensor& tensor, std::span<const std::byte> elements) {
  return {.name = tensor.name,
          .type = tensor.type,
          .dims = tensor.dims,
          .elements = elements,
          .is_parameter = tensor.is_parameter,
          .requires_grad = tensor.is_parameter && is_floating(tensor.type->dtype)};
}

/// Tensors with the same one share their elements.
std::pair<const void*, size_t> identity(const ArchivedTensor& tensor) {
  if (tensor.late) return {tensor.late.get(), 0};
  if (tensor.elements.empty()) return {&tensor, 0};
  return {tensor.elements.data(), tensor.elements.size()};
}

std::string_view bytes_of(const Weight& weight) {
  return {reinterpret_cast<const char*>(weight.data),
          static_cast<size_t>(weight.count() * weight.stride)};
}

nlohmann::ordered_json as_integers(const std::vector<int64_t>& values) {
  auto list = nlohmann::ordered_json::array();
  for (const int64_t value : values) list.push_back({{"as_int", value}});
  return list;
}

}  // namespace

const ElementType* type_of_code(int64_t code) {
  if (code < 1 || code >= std::ssize(kTypes)) return nullptr;
  return element_type_of_name(kTypes[static_cast<size_t>(code)]);
}

int64_t code_of(const ElementType& type) {
  const auto* found = std::ranges::find(kTypes, type.name);
  return found == kTypes.end() ? 0 : found - kTypes.begin();
}

bool is_exported(const std::string& path) {
  const MappedFile file(path);
  try {
    return std::ranges::any_of(ZipReader(file.bytes(), path).entries(), [](const ZipEntry& entry) {
      return entry.name == kOldProgram || is_new_program(entry.name);
    });
  } catch (const ModelError&) {
    return false;  // whoever reads archives of another kind says what is wrong with it
  }
}

bool Archive::Group::holds(const std::string& name) const {
  return std::ranges::find(names, name) != names.end();
}

Archive::Archive(const std::string& path) : path_(path), file_(path), zip_(file_.bytes(), path) {
  find_entries();
  if (elsewhere_ != nullptr) read_checkpoint();
  program_.emplace(with_quoted_numbers(zip_.content(*program_entry_)), path_, throw_as<ModelError>);
  for (Group* group : {&weights_, &constants_}) {
    if (group->list != nullptr) read_list(*group);
    if (group->pickle != nullptr) read_pickle(*group);
  }
}

const ZipEntry* Archive::extra_file(std::string_view name) const {
  return zip_.find((folder_.empty() ? "extra_files/" : folder_ + "extra/").append(name));
}

bool Archive::is_live_module() const { return extra_file("live_module") != nullptr; }

std::optional<int64_t> Archive::place_of(const Weight& weight) const {
  if (weight.data == nullptr || weight.stride != static_cast<int64_t>(size_of(weight.dtype))) {
    return std::nullopt;
  }
  const std::string_view part = bytes_of(weight);
  if (!file_.holds(part)) return std::nullopt;
  return part.data() - file_.bytes().data();
}

void Archive::release(const Weight& weight) const {
  if (weight.data == nullptr) return;
  const std::string_view part = bytes_of(weight);
  if (checkpoint_ && !file_.holds(part))
    return checkpoint_->release(std::as_bytes(std::span(part)));
  file_.release(part);
}

std::vector<std::string> Archive::names() const {
  std::vector<std::string> names = weights_.names;
  names.insert(names.end(), constants_.names.begin(), constants_.names.end());
  return names;
}

void Archive::find_entries() {
  for (const ZipEntry& entry : zip_.entries()) {
    if (entry.name != kOldProgram && !is_new_program(entry.name)) continue;
    if (program_entry_ != nullptr) throw not_exported(path_, "it holds several programs");
    program_entry_ = &entry;
  }
  if (program_entry_ == nullptr) throw not_exported(path_, "it holds none");
  const std::string& name = program_entry_->name;
  if (name != kOldProgram) folder_ = name.substr(0, name.find('/') + 1);
  const ZipEntry* order = zip_.find(folder_ + "byteorder");
  if (order != nullptr && zip_.content(*order) == "big") {
    throw not_exported(path_, "its tensors are big-endian");
  }
  weights_ = group("weights", kOldWeights);
  constants_ = group("constants", kOldConstants);
  elsewhere_ = extra_file("weights.json");
}

void Archive::read_checkpoint() {
  const JsonDocument document(zip_.content(*elsewhere_), path_ + ": " + elsewhere_->name,
                              throw_as<ModelError>);
  checkpoint_path_ = document.root().at("checkpoint").text();
  checkpoint_ = open_checkpoint(checkpoint_path_);
  std::map<std::string, TensorId, std::less<>> stored;
  for (const TensorId id : checkpoint_->tensors().ids()) {
    stored.emplace(checkpoint_->tensors()[id].path.back(), id);
  }
  for (const JsonReader entry : document.root().at("tensors").members()) {
    const auto found = stored.find(entry.text());
    if (found == stored.end()) entry.fail("the checkpoint has no such tensor");
    in_checkpoint_.emplace(entry.own_key(), found->second);
  }
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

void Archive::add(Group& group, const std::string& name, const StoredTensor& stored,
                  StoredValues values) {
  const StoredValues& kept = values_.emplace_back(std::move(values));
  tensors_[name] = {
      .name = name, .type = stored.type, .dims = stored.dims, .elements = kept.bytes()};
  group.names.push_back(name);
}

void Archive::read_pickle(Group& group) {
  const std::string name = path_ + ": " + group.pickle->name;
  const Checkpoint& checkpoint =
      *pickles_.emplace_back(open_checkpoint(zip_.content(*group.pickle), name));
  std::map<std::tuple<StorageId, int64_t, Shape, std::vector<int64_t>>, std::string> known;
  for (const TensorId id : checkpoint.tensors().ids()) {
    const StoredTensor& stored = checkpoint.tensors()[id];
    if (stored.path.size() != 1 || code_of(*stored.type) == 0) continue;  // no program reads it
    const std::string& own = stored.path.front();
    const auto [first, fresh] =
        known.emplace(std::tuple(stored.storage, stored.offset, stored.dims, stored.strides), own);
    if (fresh) {
      add(group, own, stored, checkpoint.values(id));
    } else {
      add_name(group, own, first->second);
    }
  }
}

void Archive::read_list(Group& group) {
  const JsonDocument document(zip_.content(*group.list), path_ + ": " + group.list->name,
                              throw_as<ModelError>);
  std::map<std::string, std::string> known;
  for (const JsonReader entry : document.root().at("config").members()) {
    const std::string name(entry.own_key());
    const auto meta = entry.find("tensor_meta");
    if (!meta || !meta->is_object()) continue;  // an object other than a tensor
    if (const auto found = in_checkpoint_.find(name); found != in_checkpoint_.end()) {
      add_of_checkpoint(group, name, found->second, fixed_sizes(meta->at("sizes")));
      continue;
    }
    const std::string file = entry.at("path_name").text();
    const ZipEntry* data = zip_.find(group.folder + file);
    if (data == nullptr) throw bad_tensor(path_, name, "the archive has no " + file);
    const std::string_view bytes = zip_.content(*data);
    const auto [first, fresh] = known.emplace(file + " " + meta->json(), name);
    if (!fresh) {
      add_name(group, name, first->second);
      continue;
    }
    if (entry.at("use_pickle").flag()) {
      throw bad_tensor(path_, name, "it is stored as a pickle, not as a plain tensor");
    }
    const ElementType* type = type_of_code(meta->at("dtype").count());
    if (type == nullptr) throw bad_tensor(path_, name, "its element type is not known");
    const StoredTensor stored{.path = {name},
                              .type = type,
                              .dims = fixed_sizes(meta->at("sizes")),
                              .strides = fixed_sizes(meta->at("strides")),
                              .offset = meta->at("storage_offset").at("as_int").count()};
    const auto most = (static_cast<int64_t>(bytes.size()) + kMostExpanded) / type->bytes;
    if (stored.count() > most) throw bad_tensor(path_, name, "it has too many elements");
    add(group, name, stored, values_in(stored, bytes, path_));
    file_.release(bytes);
  }
}

void Archive::add_of_checkpoint(Group& group, const std::string& name, TensorId id,
                                const Shape& dims) {
  const StoredTensor& stored = checkpoint_->tensors()[id];
  if (stored.dims != dims) {
    throw ModelError("tensor ", in_quotes(name), " has shape ", to_string(stored.dims), " in ",
                     checkpoint_path_, ", and ", to_string(dims), " in the network");
  }
  const auto [first, fresh] = of_checkpoint_.emplace(id, name);
  if (!fresh) return add_name(group, name, first->second);
  add(group, name, stored, checkpoint_->values(id));
}

void Archive::add_name(Group& group, const std::string& name, const std::string& of) {
  tensors_[name] = tensors_.at(of);
  tensors_[name].name = name;
  group.names.push_back(name);
}

void Archive::write(const std::string& path, const std::string& program,
                    const std::vector<ArchivedTensor>& weights,
                    const std::vector<ArchivedTensor>& constants) const {
  NewFile file(path);
  ZipWriter zip(file);
  std::set<const ZipEntry*> written{program_entry_, elsewhere_};
  const auto write = [&](const Group& group, const std::vector<ArchivedTensor>& tensors) {
    if (group.pickle == nullptr && group.list == nullptr) return;
    if (tensors.empty() && group.names.empty()) return;  // as it was
    written.insert({group.pickle, group.list});
    for (const ZipEntry& entry : zip_.entries()) {
      if (group.list != nullptr && entry.name.starts_with(group.folder)) written.insert(&entry);
    }
    write_group(zip, group, tensors);
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
                          const std::vector<ArchivedTensor>& tensors) const {
  if (group.list != nullptr) return write_list(zip, group, tensors);
  const TemporaryFolder folder;
  const std::string path = folder.path() / "tensors.pt";
  std::vector<PlainTensor> all;
  std::map<const LateElements*, std::vector<std::byte>> made;
  for (const ArchivedTensor& tensor : tensors) {
    if (tensor.late && !made.contains(tensor.late.get())) {
      made[tensor.late.get()] = tensor.late->make();
    }
    all.push_back(plain(tensor, tensor.late ? made.at(tensor.late.get()) : tensor.elements));
  }
  write_new_checkpoint(path, all);
  const MappedFile file(path);
  zip.add(group.pickle->name, file.bytes());
}

namespace {

/// Makes the elements of the next tensor while those of one are written, if they are many.
class MadeAhead {
 public:
  explicit MadeAhead(const std::vector<ArchivedTensor>& tensors) {
    std::set<std::pair<const void*, size_t>> known;
    for (const ArchivedTensor& tensor : tensors) {
      if (tensor.late && known.insert(identity(tensor)).second) later_.push_back(&tensor);
    }
    begin();
  }

  /// In the order of the list, each once; empty if they exist.
  std::vector<std::byte> elements(const ArchivedTensor& tensor) {
    if (!tensor.late) return {};
    std::vector<std::byte> made = made_.get();
    begin();
    return made;
  }

 private:
  void begin() {
    constexpr int64_t kWorthAThread = 1 << 20;
    if (next_ == later_.size()) return;
    const ArchivedTensor& next = *later_[next_++];
    const bool many = element_count(next.dims) * next.type->bytes >= kWorthAThread;
    made_ = std::async(many ? std::launch::async : std::launch::deferred,
                       [of = next.late.get()] { return of->make(); });
  }

  std::vector<const ArchivedTensor*> later_;
  size_t next_ = 0;
  std::future<std::vector<std::byte>> made_;
};

}  // namespace

void Archive::write_list(ZipWriter& zip, const Group& group,
                         const std::vector<ArchivedTensor>& tensors) const {
  constexpr size_t kReleased = 16 << 20;  // bytes of the file that stay resident meanwhile
  const JsonDocument document(zip_.content(*group.list), path_ + ": " + group.list->name,
                              throw_as<ModelError>);
  nlohmann::ordered_json list = tree_of(document.root());
  const auto before = std::exchange(list["config"], nlohmann::ordered_json::object());
  std::unordered_map<std::string_view, const nlohmann::ordered_json*> known;
  for (const auto& [name, entry] : before.items()) known.emplace(name, &entry);
  auto& config = list["config"].get_ref<nlohmann::ordered_json::object_t&>();
  config.reserve(before.size() + tensors.size());  // it copies its members when it grows
  const std::string stem = group.folder.ends_with("/weights/") ? "weight_" : "tensor_";
  std::map<std::pair<const void*, size_t>, std::string> files;
  MadeAhead ahead(tensors);
  size_t resident = 0;
  for (const ArchivedTensor& tensor : tensors) {
    std::string& file = files[identity(tensor)];
    if (file.empty()) {
      file = stem + std::to_string(files.size() - 1);
      const std::vector<std::byte> made = ahead.elements(tensor);
      const std::span<const std::byte> elements = tensor.late ? made : tensor.elements;
      zip.add(group.folder + file,
              {reinterpret_cast<const char*>(elements.data()), elements.size()});
      resident += elements.size();
      if (resident >= kReleased) {
        file_.release(file_.bytes());
        resident = 0;
      }
    }
    const auto as_before = known.find(tensor.name);
    nlohmann::ordered_json& entry =
        config.emplace_back(tensor.name, nlohmann::ordered_json()).second;
    if (as_before != known.end()) {
      entry = *as_before->second;
    } else {
      entry = {{"path_name", ""}, {"is_param", tensor.is_parameter}, {"use_pickle", false}};
      entry["tensor_meta"] = {{"requires_grad", tensor.is_parameter},
                              {"device", {{"type", "cpu"}, {"index", nullptr}}},
                              {"layout", 7}};
    }
    entry["path_name"] = file;
    auto& meta = entry["tensor_meta"];
    meta["dtype"] = code_of(*tensor.type);
    meta["sizes"] = as_integers(tensor.dims);
    meta["strides"] = as_integers(dense_strides(tensor.dims));
    meta["storage_offset"] = {{"as_int", 0}};
  }
  for (const auto& [name, entry] : before.items()) {  // objects that are no tensors
    if (tensors_.contains(name)) continue;
    config.emplace_back(name, entry);
    const std::string file = entry.value("path_name", "");
    const ZipEntry* data = zip_.find(group.folder + file);
    if (data != nullptr) zip.add(data->name, zip_.content(*data));
  }
  zip.add(group.list->name, list.dump());
}

}  // namespace parsimony::programs
