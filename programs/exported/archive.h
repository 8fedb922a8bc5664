// The archive of a program of torch.export: JSON, and tensors by name.
//
//     PyTorch 2.1 to 2.6                  since 2.8
//     serialized_exported_program.json    NAME/models/model.json
//     serialized_state_dict.pt            NAME/data/weights/…     one pickle, or a file for each
//     serialized_constants.pt             NAME/data/constants/…   tensor and their list in JSON
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/files.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/base/types.h"
#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/checkpoints/zip.h"
#include "parsimony/graph/graph.h"

namespace parsimony::programs {

/// Elements, row-major, that are made when they are written: of all tensors together they would
/// take the memory of the network.
class LateElements {
 public:
  virtual ~LateElements() = default;
  virtual std::vector<std::byte> make() const = 0;
};

/// A parameter, buffer or constant. Its elements are row-major and lie elsewhere; tensors that
/// share them are one tensor of several names.
struct ArchivedTensor {
  std::string name;
  const ElementType* type = nullptr;
  Shape dims = {};
  std::span<const std::byte> elements = {};
  std::shared_ptr<const LateElements> late = {};  ///< instead of `elements`
  bool is_parameter = false;
};

/// The element type that programs have under this number; null for unknown ones.
/// @source torch/_export/serde/schema.py, ScalarType
const ElementType* type_of_code(int64_t code);
/// Its number; 0 if programs have none.
int64_t code_of(const ElementType& type);

/// Whether a file is such an archive, by the names of its entries. @throws IoError
bool is_exported(const std::string& path);

/// The mapped file, whose tensors are views of it where they lie row-major there.
///
/// The elements of tensors may lie in a checkpoint instead, whose path and tensors an extra file
/// names: `weights.json` with {"checkpoint": PATH, "tensors": {NAME: NAME THERE}}. A program of a
/// network that does not fit in memory is written so.
class Archive {
 public:
  /// @throws IoError; ModelError if it is damaged
  explicit Archive(const std::string& path);

  const std::string& path() const { return path_; }
  const MappedFile& file() const { return file_; }
  /// Where the elements are in the file; empty if they are not, or not only they.
  std::optional<int64_t> place_of(const Weight& weight) const;
  /// The elements need not stay resident until they are read again.
  void release(const Weight& weight) const;

  /// The program, with "Infinity" and "NaN" in quotes where Python left them bare.
  JsonReader program() const { return program_->root(); }
  const std::map<std::string, ArchivedTensor>& tensors() const { return tensors_; }
  /// Whether it was written from a module that will be cut in place: its extra files name it so.
  bool is_live_module() const;

  /// Names of all tensors, in the order in which they are stored.
  std::vector<std::string> names() const;
  /// Whether the tensor is among the constants rather than the weights.
  bool is_constant(const std::string& name) const { return constants_.holds(name); }

  /// Writes under a temporary name, then renames. Entries other than the program and the tensors
  /// are copied byte for byte. @throws IoError
  void write(const std::string& path, const std::string& program,
             const std::vector<ArchivedTensor>& weights,
             const std::vector<ArchivedTensor>& constants) const;

 private:
  /// Where a group of tensors is.
  struct Group {
    std::string folder;  ///< "NAME/data/weights/"; empty for one pickle
    const ZipEntry* pickle = nullptr;
    const ZipEntry* list = nullptr;  ///< in JSON
    std::vector<std::string> names = {};

    bool holds(const std::string& name) const;
  };

  void find_entries();
  const ZipEntry* extra_file(std::string_view name) const;
  void read_checkpoint();
  Group group(const std::string& kind, std::string_view old_entry) const;
  void read_pickle(Group& group);
  void read_list(Group& group);
  void add(Group& group, const std::string& name, const StoredTensor& stored, StoredValues values);
  void add_of_checkpoint(Group& group, const std::string& name, TensorId id, const Shape& dims);
  void add_name(Group& group, const std::string& name, const std::string& of);
  void write_group(ZipWriter& zip, const Group& group,
                   const std::vector<ArchivedTensor>& tensors) const;
  void write_list(ZipWriter& zip, const Group& group,
                  const std::vector<ArchivedTensor>& tensors) const;

  std::string path_;
  MappedFile file_;
  ZipReader zip_;
  std::string folder_;  ///< "NAME/"
  const ZipEntry* program_entry_ = nullptr;
  std::optional<JsonDocument> program_;
  Group weights_, constants_;
  const ZipEntry* elsewhere_ = nullptr;  ///< which tensors lie in the checkpoint
  std::string checkpoint_path_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::map<std::string, TensorId> in_checkpoint_;  ///< by the program's names
  std::map<TensorId, std::string> of_checkpoint_;  ///< and the first of these that was read
  std::vector<std::unique_ptr<Checkpoint>> pickles_;
  std::deque<StoredValues> values_;
  std::map<std::string, ArchivedTensor> tensors_;
};

}  // namespace parsimony::programs
