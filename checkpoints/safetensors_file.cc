// A file of safetensors.
#include <algorithm>
#include <utility>

#include "parsimony/checkpoints/formats_impl.h"
#include "parsimony/masks/errors.h"
#include "parsimony/masks/tensor_file.h"

namespace parsimony::checkpoints {
namespace {

class Safetensors : public CheckpointFile {
 public:
  explicit Safetensors(const std::string& path)
      : CheckpointFile(path), header_(parse_header(bytes(), path)) {
    for (const TensorEntry& entry : header_.tensors) {
      const ElementType* type = element_type_of_safetensors(entry.dtype);
      const std::string_view data = bytes().substr(entry.begin, entry.end - entry.begin);
      StoredTensor tensor{{entry.name}, type, entry.dims, dense_strides(entry.dims), 0};
      if (type == nullptr) {  // kept as its bytes
        tensor.type = element_type_of_name("bytes");
        tensor.dims = {static_cast<int64_t>(data.size())};
        tensor.strides = {1};
        tensor.why_fixed = "elements of type " + in_quotes(entry.dtype) + " are not known";
      } else if (element_count(entry.dims) * type->bytes != static_cast<int64_t>(data.size())) {
        throw errors::bad_tensor(path, entry.name, "its shape does not fit its data_offsets");
      }
      tensor.storage = storages_.next_id();
      storages_.push_back(data);
      tree_.push_back(
          {0, entry.name,
           (type == nullptr ? entry.dtype : std::string(type->name)) + " " + to_string(entry.dims),
           tensors_.next_id()});
      tensors_.push_back(std::move(tensor));
    }
    index_tensors();
  }

  std::string_view format() const override { return "safetensors"; }

  void rename(TensorId tensor, std::string name) override { set_name(tensor, std::move(name)); }

 private:
  void write_changed(NewFile& file, const NewLayout& layout) const override {
    std::vector<TensorId> by_place(tensors_.ids().begin(), tensors_.ids().end());
    std::erase_if(by_place, [this](TensorId id) { return leaves(id); });
    std::ranges::stable_sort(by_place, {},
                             [&](TensorId id) { return header_.tensors[id.index()].begin; });
    std::vector<TensorEntry> entries = header_.tensors;
    uint64_t at = 0;
    for (const TensorId id : by_place) {
      TensorEntry& entry = entries[id.index()];
      if (layout.storages[tensors_[id].storage]) entry.dims = layout.views[id].dims;
      if (new_name(id)) entry.name = *new_name(id);
      entry.begin = at;
      at += size_of(tensors_[id].storage, layout);
      entry.end = at;
    }
    std::vector<TensorEntry> left;
    for (const TensorId id : tensors_.ids()) {
      if (!leaves(id)) left.push_back(std::move(entries[id.index()]));
    }
    file.write(header_text(left, header_.metadata));
    for (const TensorId id : by_place) {
      copy(tensors_[id].storage, layout, [&](std::string_view piece) { file.write(piece); });
    }
  }

  TensorHeader header_;
};

}  // namespace

std::unique_ptr<Checkpoint> open_safetensors(const std::string& path) {
  return std::make_unique<Safetensors>(path);
}

}  // namespace parsimony::checkpoints
