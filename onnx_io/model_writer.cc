#include <absl/container/flat_hash_set.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

#include "parsimony/base/files.h"
#include "parsimony/base/ranges.h"
#include "parsimony/onnx_io/embedded_impl.h"
#include "parsimony/onnx_io/errors.h"
#include "parsimony/onnx_io/model_file_impl.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kWritten = int64_t{4} << 20;
constexpr int64_t kAlignment = 64;

/// A tensor to move from the old data file to the new one.
struct Move {
  onnx::TensorProto* tensor = nullptr;
  ExternalData::Range from;
  const ExternalEdit* edit = nullptr;
  int64_t offset = 0;
  int64_t bytes = 0;
};

/// Returns whether the file contains tensors of the model that was read.
bool is_own_file(const ModelFile::Impl& impl, const fs::path& path) {
  std::error_code ignored;
  for (const ExternalData::File& file : impl.external.files()) {
    if (fs::equivalent(file.path, path, ignored)) return true;
  }
  return false;
}

/// Returns the path of the external data of a model written to `path`, which the model in memory
/// does not read.
std::string data_path(const ModelFile::Impl& impl, const std::string& path) {
  std::string requested = path + ".data";
  for (int i = 1; is_own_file(impl, requested); ++i) {
    requested = path + "." + std::to_string(i) + ".data";
  }
  return requested;
}

/// Returns data files that are unused once the model at `path` has been replaced by an edited
/// version: those that belong to it by name, M.onnx.data, M.onnx_data, M.onnx.1.data. Other files
/// may belong to other models, and links to a hub's cache. None if `path` is not the name that was
/// read: the old model remains under another hard link.
std::vector<fs::path> data_files_left_by(const ModelFile::Impl& impl, const std::string& path) {
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  if (error || target != fs::canonical(impl.path, error)) return {};
  const std::string model = fs::path(impl.path).filename().string();
  std::vector<fs::path> names;
  for (const ExternalData::File& file : impl.external.files()) {
    const fs::path own = fs::path(impl.path).parent_path() / file.location;
    const std::string name = own.filename().string();
    const bool ours = name.starts_with(model + ".") || name.starts_with(model + "_");
    // A link's target is the hub's, and a path with folders was laid out by hand.
    if (ours && own.filename() == file.location && !fs::is_symlink(own, error)) {
      names.push_back(own);
    }
  }
  return names;
}

Move move_of(ModelFile::Impl& impl, onnx::TensorProto& tensor) {
  const auto edit = impl.external_edits.find(&tensor);
  if (edit != impl.external_edits.end()) {
    return {&tensor, edit->second.source, &edit->second, 0, 0};
  }
  return {&tensor, external_range(tensor, impl.external), nullptr, 0, 0};
}

/// Returns the tensors of the model that are external, or are to be, and maps their files.
/// @throws IoError if `path`, the output, is one of these files
std::vector<Move> moves_to(ModelFile::Impl& impl, const std::string& path, Embedded embedded) {
  std::vector<Move> moves;
  for_each_tensor(impl.model, [&](onnx::TensorProto& tensor) {
    const bool stays = is_embedded(tensor) && embedded == Embedded::kInside;
    if (is_external(tensor) && !stays) moves.push_back(move_of(impl, tensor));
  });
  if (is_own_file(impl, path))
    throw errors::cannot_write(path, "the model's tensors are stored there");
  return moves;
}

/// A new file. Small runs are buffered, to avoid a system call for each.
class Output {
 public:
  explicit Output(const std::string& path) : file_(path) { buffer_.reserve(kWritten); }

  int64_t position() const { return position_; }

  void add(const std::byte* data, int64_t bytes) {
    position_ += bytes;
    if (bytes > room()) flush();
    if (bytes > room()) return write(data, bytes);
    buffer_.insert(buffer_.end(), data, data + bytes);
  }
  void add(std::string_view bytes) {
    add(reinterpret_cast<const std::byte*>(bytes.data()), std::ssize(bytes));
  }
  void align(int64_t alignment) {
    add(std::string((alignment - position_ % alignment) % alignment, '\0'));
  }
  int64_t room() const { return kWritten - std::ssize(buffer_); }
  /// Returns the last `bytes` added, which must have been fewer than the room.
  std::byte* tail(int64_t bytes) { return buffer_.data() + buffer_.size() - bytes; }
  void flush() {
    write(buffer_.data(), std::ssize(buffer_));
    buffer_.clear();
  }
  void commit(bool lasting) { file_.commit(lasting); }

 private:
  void write(const std::byte* data, int64_t bytes) {
    file_.write({reinterpret_cast<const char*>(data), static_cast<size_t>(bytes)});
  }

  NewFile file_;
  std::vector<std::byte> buffer_;
  int64_t position_ = 0;
};

/// Passes the remaining elements to `sink`, with zeros applied. Pages are released after use.
template <typename Sink>
void each_packed(const ExternalEdit& edit, DType dtype, const ExternalData& external,
                 const Sink& sink) {
  const std::byte* resident = edit.source.data;
  for_each_packed(edit.source.data, edit.dims, size_of(dtype), edit.axes,
                  [&](std::span<const std::byte> packed, const std::byte* upto) {
                    sink(packed);
                    external.release(resident, upto - resident);
                    resident = upto;
                  });
  external.release(resident, edit.source.data + edit.source.bytes - resident);
}

void write_changed(const ExternalEdit& edit, DType dtype, const ExternalData& external,
                   Output& output) {
  const Shape dims = sliced(edit.dims, edit.axes);
  const int64_t rows = dims.empty() ? 1 : dims.front();
  const int64_t row_bytes = element_count(dims) * size_of(dtype) / std::max<int64_t>(1, rows);
  const int64_t step = std::max<int64_t>(1, kWritten / std::max<int64_t>(1, row_bytes));
  for (int64_t first = 0; first < rows; first += step) {
    const std::vector<std::byte> bytes =
        edited_rows(edit, dtype, external, first, std::min(step, rows - first));
    output.add(bytes.data(), std::ssize(bytes));
  }
}

void write_edit(const ExternalEdit& edit, DType dtype, const ExternalData& external,
                Output& output) {
  if (is_packed(dtype)) {
    const std::vector<std::byte> bytes = packed(edited(edit, dtype, external), dtype);
    return output.add(bytes.data(), std::ssize(bytes));
  }
  if (edit.change) return write_changed(edit, dtype, external, output);
  if (!edit.zeros) {
    return each_packed(edit, dtype, external, [&](std::span<const std::byte> packed) {
      output.add(packed.data(), std::ssize(packed));
    });
  }
  const int64_t size = size_of(dtype);
  for_each_kept_run(edit, size, external, [&](const std::byte* run, int64_t bytes) {
    while (bytes > 0) {
      if (output.room() < size) output.flush();
      const int64_t part = std::min(bytes, output.room() / size * size);
      output.add(run, part);
      const int64_t index = (run - edit.source.data) / size;
      set_zero(output.tail(part), part / size, index, dtype, size, *edit.zeros);
      run += part;
      bytes -= part;
    }
  });
}

/// Writes the elements of a tensor that was not edited.
void write_unedited(const ExternalData::Range& from, const ExternalData& external, Output& output) {
  for (int64_t at = 0; at < from.bytes; at += kWritten) {
    const int64_t part = std::min(kWritten, from.bytes - at);
    output.add(from.data + at, part);
    external.release(from.data + at, part);
  }
}

void write_moves(std::vector<Move>& moves, const ExternalData& external, Output& output) {
  std::map<std::pair<const std::byte*, int64_t>, int64_t> written;  // tied tensors stay tied
  for (Move& move : moves) {
    if (move.edit == nullptr) {
      const auto [known, fresh] = written.try_emplace({move.from.data, move.from.bytes}, 0);
      move.bytes = move.from.bytes;
      if (fresh) {
        output.align(kAlignment);
        known->second = output.position();
        write_unedited(move.from, external, output);
      }
      move.offset = known->second;
      continue;
    }
    output.align(kAlignment);
    move.offset = output.position();
    write_edit(*move.edit, dtype_of_onnx(move.tensor->data_type()), external, output);
    move.bytes = output.position() - move.offset;
  }
}

using Entries = google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>;

/// Makes the tensors point into the new file during its lifetime; the model in memory keeps reading
/// the old one.
class Relocation {
 public:
  Relocation(std::vector<Move>& moves, const std::string& location) : moves_(moves) {
    for (const Move& move : moves) {
      Entries fresh;
      for (const auto& entry : move.tensor->external_data()) {
        const std::string& key = entry.key();
        if (key == "location" || key == "offset" || key == "length" || key == "checksum") continue;
        *fresh.Add() = entry;
      }
      add(fresh, "location", location);
      add(fresh, "offset", std::to_string(move.offset));
      add(fresh, "length", std::to_string(move.bytes));
      move.tensor->mutable_external_data()->Swap(&fresh);
      old_.push_back(std::move(fresh));
    }
  }
  ~Relocation() {
    for (size_t i = 0; i < old_.size(); ++i) {
      moves_[i].tensor->mutable_external_data()->Swap(&old_[i]);
    }
  }
  Relocation(const Relocation&) = delete;
  Relocation& operator=(const Relocation&) = delete;

 private:
  static void add(Entries& entries, const std::string& key, const std::string& value) {
    onnx::StringStringEntryProto& entry = *entries.Add();
    entry.set_key(key);
    entry.set_value(value);
  }

  std::vector<Move>& moves_;
  std::vector<Entries> old_;
};

void check_size(int64_t bytes, const std::string& path) {
  if (bytes > std::numeric_limits<int32_t>::max()) throw errors::too_large(path, bytes);
}

/// Another tensor may get the address of one that was removed.
void forget_removed(ModelFile::Impl& impl) {
  absl::flat_hash_set<const onnx::TensorProto*> left;
  for_each_tensor(impl.model, [&](onnx::TensorProto& tensor) { left.insert(&tensor); });
  std::erase_if(impl.external_edits, [&](const auto& edit) { return !left.contains(edit.first); });
}

/// Passes what protobuf writes to an output. Its streams write in their destructors, too, which no
/// exception may leave: the first one is kept.
class Serialised final : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit Serialised(Output& output) : output_(output) {}

  bool Write(const void* data, int bytes) override {
    if (error_) return false;
    try {
      output_.add(static_cast<const std::byte*>(data), bytes);
      return true;
    } catch (...) {
      error_ = std::current_exception();
      return false;
    }
  }
  void check() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  Output& output_;
  std::exception_ptr error_;
};

/// Writes the message of the model as it is, tensors without a copy.
void serialise(const onnx::ModelProto& model, Output& output) {
  Serialised sink(output);
  {
    google::protobuf::io::CopyingOutputStreamAdaptor stream(&sink);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.EnableAliasing(true);
    model.SerializeWithCachedSizes(&coded);
  }
  sink.check();
}

/// Writes the message of the model, with the elements that are in its own file.
void write_model(ModelFile::Impl& impl, const std::string& path, Output& output) {
  check_size(static_cast<int64_t>(impl.model.ByteSizeLong()), path);
  auto& tensors = *impl.model.mutable_graph()->mutable_initializer();
  if (std::ranges::none_of(tensors, is_embedded)) return serialise(impl.model, output);
  const auto bytes_of = [&](int i) -> std::optional<int64_t> {
    if (!is_embedded(tensors[i])) return std::nullopt;
    return file_bytes(dtype_of_onnx(tensors[i].data_type()), element_count(dims_of(tensors[i])));
  };
  const std::string message = impl.model.SerializeAsString();
  const EmbeddingMessage whole(message, bytes_of);
  check_size(whole.bytes(), path);
  whole.write([&](std::string_view part) { output.add(part); },
              [&](int i) {
                const Move move = move_of(impl, tensors[i]);
                if (move.edit == nullptr) return write_unedited(move.from, impl.external, output);
                write_edit(*move.edit, dtype_of_onnx(tensors[i].data_type()), impl.external,
                           output);
              });
}

bool same_bytes(const ExternalData::File& file, const std::string& path) {
  std::error_code ignored;
  if (fs::equivalent(file.path, path, ignored)) return true;
  if (size_of_file(path) != file.bytes) return false;
  const MappedFile other(path);
  return std::memcmp(other.bytes().data(), file.data, file.bytes) == 0;
}

}  // namespace

void for_each_kept_run(const ExternalEdit& edit, int64_t element_bytes,
                       const ExternalData& external, const RunSink& run) {
  const std::byte* resident = edit.source.data;
  const auto give_back = [&](const std::byte* upto) {
    external.release(resident, upto - resident);
    resident = upto;
  };
  for_each_run(edit.source.data, edit.dims, element_bytes, edit.axes,
               [&](const std::byte* data, int64_t bytes) {
                 for (int64_t at = 0; at < bytes; at += kWritten) {
                   const int64_t part = std::min(kWritten, bytes - at);
                   run(data + at, part);
                   if (data + at + part - resident >= kWritten) give_back(data + at + part);
                 }
               });
  give_back(edit.source.data + edit.source.bytes);
}

namespace {

/// Returns the remaining elements, without changes.
std::vector<std::byte> remaining(const ExternalEdit& edit, DType dtype,
                                 const ExternalData& external) {
  std::vector<std::byte> result;
  const int64_t size = size_of(dtype);
  if (!edit.zeros) {
    each_packed(edit, dtype, external, [&](std::span<const std::byte> packed) {
      result.insert(result.end(), packed.begin(), packed.end());
    });
    return result;
  }
  for_each_kept_run(edit, size, external, [&](const std::byte* run, int64_t bytes) {
    result.insert(result.end(), run, run + bytes);
    set_zero(result.data() + result.size() - bytes, bytes / size, (run - edit.source.data) / size,
             dtype, size, *edit.zeros);
  });
  return result;
}

}  // namespace

std::vector<std::byte> edited(const ExternalEdit& edit, DType dtype, const ExternalData& external) {
  std::vector<std::byte> result = remaining(edit, dtype, external);
  if (edit.change) edit.change(result, {});
  return result;
}

std::vector<std::byte> edited_rows(const ExternalEdit& edit, DType dtype,
                                   const ExternalData& external, int64_t first, int64_t count) {
  if (edit.dims.empty()) return edited(edit, dtype, external);
  ExternalEdit rows = edit;
  auto axis = std::ranges::find_if(rows.axes, [](const AxisKeep& keep) { return keep.axis == 0; });
  if (axis == rows.axes.end()) {
    axis = rows.axes.insert(axis, {0, edit.dims[0], successive(0, edit.dims[0])});
  }
  axis->keep = {axis->keep.begin() + first, axis->keep.begin() + first + count};
  std::vector<std::byte> result = remaining(rows, dtype, external);
  if (edit.change) edit.change(result, successive(first, first + count));
  return result;
}

int64_t write_edited(ModelFile::Impl& impl, const std::string& path, Embedded embedded) {
  if (impl.index) {
    impl.index->purge();
    forget_removed(impl);
  }
  std::vector<Move> moves = moves_to(impl, path, embedded);
  std::optional<Output> data;
  std::string location;
  if (!moves.empty()) {
    const std::string name = data_path(impl, path);
    location = fs::path(name).filename().string();
    data.emplace(name);
    write_moves(moves, impl.external, *data);
    data->flush();
  }
  const Relocation relocation(moves, location);
  Output output(path);
  write_model(impl, path, output);
  output.flush();
  const std::vector<fs::path> unused = data_files_left_by(impl, path);
  if (data) data->commit(fs::exists(path));
  output.commit(false);
  std::error_code ignored;  // a remaining file does no harm
  for (const fs::path& file : unused) fs::remove(file, ignored);
  return output.position() + (data ? data->position() : 0);
}

std::optional<int64_t> copy_unedited(ModelFile::Impl& impl, const std::string& path) {
  moves_to(impl, path, Embedded::kInside);  // maps the files
  const fs::path folder = fs::path(path).parent_path();
  std::vector<std::pair<std::string, ExternalData::File>> missing;
  for (const ExternalData::File& file : impl.external.files()) {
    const fs::path target = folder / file.location;
    std::error_code ignored;  // an error is reported when the file is created
    if (!fs::exists(target, ignored)) {
      missing.emplace_back(target.string(), file);
    } else if (!same_bytes(file, target.string())) {
      return std::nullopt;
    }
  }
  for (const auto& [target, file] : missing) {
    std::error_code ignored;
    if (fs::path(target).has_parent_path()) {
      fs::create_directories(fs::path(target).parent_path(), ignored);
    }
    write_file(target, {reinterpret_cast<const char*>(file.data), static_cast<size_t>(file.bytes)});
  }
  write_file(path, impl.source.bytes());
  int64_t bytes = std::ssize(impl.source.bytes());
  for (const ExternalData::File& file : impl.external.files()) bytes += file.bytes;
  return bytes;
}

}  // namespace parsimony::onnx_io
