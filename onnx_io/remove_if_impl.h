// Takes elements out of a message's list.
#pragma once

#include <google/protobuf/repeated_field.h>

namespace parsimony::onnx_io {

/// Removes the elements for which `gone` holds and keeps the order of the others.
template <typename T, typename Predicate>
void remove_if(google::protobuf::RepeatedPtrField<T>& list, Predicate gone) {
  int kept = 0;
  for (int i = 0; i < list.size(); ++i) {
    if (gone(list.Get(i))) continue;
    if (kept != i) list.SwapElements(kept, i);  // swaps pointers: those of others stay valid
    ++kept;
  }
  list.DeleteSubrange(kept, list.size() - kept);
}

}  // namespace parsimony::onnx_io
