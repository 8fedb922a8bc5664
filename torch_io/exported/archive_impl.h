// The archive of a torch.export program: JSON, and tensors by name.
//
//     PyTorch 2.1 to 2.6                  since 2.8
//     serialized_exported_program.json    NAME/models/model.json
//     serialized_state_dict.pt            NAME/data/weights/…     one pickle, or a file for each
//     serialized_constants.pt             NAME/data/constants/…   tensor and their list in JSON
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/files.h"
#include "parsimony/checkpoints/zip.h"

namespace parsimony::torch_io::exported {

/// A parameter, buffer or constant.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  bool is_parameter = false;
};

/// Whether the archive contains such a program, by the names of its entries.
bool is_exported(const std::vector<std::string>& entries);

class Archive {
 public:
  /// Reads all tensors into memory; those that share elements are one tensor.
  /// @throws IoError; ModelError if it is damaged
  explicit Archive(const std::string& path);

  /// The program, with "Infinity" and "NaN" in quotes where Python left them bare.
  const std::string& program() const { return program_; }
  const std::map<std::string, at::Tensor>& tensors() const { return tensors_; }

  /// Writes under a temporary name, then renames. Entries other than the program and the tensors
  /// are unchanged. @throws IoError
  void write(const std::string& path, const std::string& program,
             const std::vector<NamedTensor>& weights,
             const std::vector<NamedTensor>& constants) const;

  /// Names of all tensors, in the order in which they are stored.
  std::vector<std::string> names() const;

  /// Whether it is among the constants rather than the weights.
  bool is_constant(const std::string& name) const { return constants_.holds(name); }

 private:
  /// The location of a group of tensors.
  struct Group {
    std::string folder;  ///< "NAME/data/weights/"; empty for one pickle
    const ZipEntry* pickle = nullptr;
    const ZipEntry* list = nullptr;  ///< in JSON
    std::vector<std::string> names = {};

    bool holds(const std::string& name) const;
  };

  void find_entries();
  Group group(const std::string& kind, std::string_view old_entry) const;
  void read_pickle(Group& group);
  void read_list(Group& group);
  at::Tensor read_raw(const std::string& name, std::string_view bytes, const std::string& meta);
  void write_group(ZipWriter& zip, const Group& group,
                   const std::vector<NamedTensor>& tensors) const;
  void write_list(ZipWriter& zip, const Group& group,
                  const std::vector<NamedTensor>& tensors) const;

  std::string path_;
  MappedFile file_;
  ZipReader zip_;
  std::string folder_;  ///< "NAME/"
  const ZipEntry* program_entry_ = nullptr;
  std::string program_;
  Group weights_, constants_;
  std::map<std::string, at::Tensor> tensors_;
};

}  // namespace parsimony::torch_io::exported
