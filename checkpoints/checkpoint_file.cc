#include "parsimony/checkpoints/errors.h"
#include "parsimony/checkpoints/formats_impl.h"

namespace parsimony::checkpoints {

void CheckpointFile::settle() {
  edits_ = Edits(tensors_.size());
  IdVector<StorageId, int64_t> element(storages_.size());
  IdVector<StorageId, bool> is_mixed(storages_.size());
  for (const StoredTensor& tensor : tensors_) {
    check_fits(tensor, storages_[tensor.storage], path_);
    int64_t& bytes = element[tensor.storage];
    if (bytes != 0 && bytes != tensor.type->bytes) is_mixed[tensor.storage] = true;
    bytes = tensor.type->bytes;
  }
  for (StoredTensor& tensor : tensors_) {
    if (is_mixed[tensor.storage] && tensor.why_fixed.empty()) {
      tensor.why_fixed = "its storage holds elements of several sizes";
    }
  }
}

StoredValues CheckpointFile::values(TensorId tensor) const {
  return values_of(tensors_[tensor], storages_[tensors_[tensor].storage]);
}

std::vector<TensorId> CheckpointFile::tied(TensorId tensor) const {
  const StoredTensor& wanted = tensors_[tensor];
  std::vector<TensorId> tied;
  for (const TensorId id : tensors_.ids()) {
    const StoredTensor& other = tensors_[id];
    if (other.storage == wanted.storage && other.offset == wanted.offset &&
        other.dims == wanted.dims && other.strides == wanted.strides) {
      tied.push_back(id);
    }
  }
  return tied;
}

void CheckpointFile::check_may_change(TensorId tensor) const {
  const StoredTensor& stored = tensors_[tensor];
  if (stored.why_fixed.empty()) return;
  throw errors::fixed_tensor(to_string(stored.path), stored.why_fixed);
}

void CheckpointFile::cut(TensorId tensor, std::vector<AxisKeep> axes) {
  check_may_change(tensor);
  for (const TensorId id : tied(tensor)) edits_.cuts[id] = axes;
}

void CheckpointFile::assign(TensorId tensor, std::vector<std::byte> values) {
  check_may_change(tensor);
  for (const TensorId id : tied(tensor)) edits_.values[id] = values;
}

void CheckpointFile::write(const std::string& path) const {
  NewFile file(path);
  if (edits_.empty()) {
    file.write(bytes());
  } else {
    write_changed(file, lay_out(tensors_, storages_.size(), edits_));
  }
  file.commit();
}

void CheckpointFile::copy(StorageId storage, const NewLayout& layout, const Sink& sink) const {
  const auto& as = layout.storages[storage];
  if (as) {
    copy_storage(tensors_, storages_[storage], *as, edits_, sink);
  } else {
    sink(storages_[storage]);
  }
  if (file_) file_->release(storages_[storage]);
}

uint64_t CheckpointFile::size_of(StorageId storage, const NewLayout& layout) const {
  const auto& as = layout.storages[storage];
  if (!as) return storages_[storage].size();
  return as->elements * tensors_[as->order.front()].type->bytes;
}

}  // namespace parsimony::checkpoints
