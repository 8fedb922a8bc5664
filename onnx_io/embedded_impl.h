// Elements in a model's own file. They stay there while the model is read and edited, as external
// data do, and pass from the old file to the new one when it is written.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony::onnx_io {

/// The location, in external data, of the model's own file. No file has such a name.
inline constexpr std::string_view kOwnFile("\0", 1);

/// A model's message without the elements of its large initializers, each of which says instead
/// where they are: is_embedded().
struct Reduced {
  std::string message;
  int embedded = 0;  ///< how many these are
};

/// Nothing if most of the file would remain, or if it is damaged.
std::optional<Reduced> without_elements(std::string_view file);

/// The message of a model whose embedded elements are put back.
class EmbeddingMessage {
 public:
  /// @param message  without them; must exist as long as this
  /// @param bytes  of the elements of an initializer by its number; nothing where none are missing
  EmbeddingMessage(std::string_view message,
                   const std::function<std::optional<int64_t>(int initializer)>& bytes);

  int64_t bytes() const { return bytes_; }

  /// Passes all parts in order: as they are, or the elements of an initializer.
  void write(const std::function<void(std::string_view)>& part,
             const std::function<void(int initializer)>& elements) const;

 private:
  struct Part {
    std::string_view bytes;
    int initializer = -1;  ///< whose elements follow
  };

  void add(std::string_view bytes);
  void add_around(std::string_view tensor, int initializer, int64_t elements);

  std::deque<std::string> own_;  ///< to which parts refer
  std::vector<Part> parts_;
  int64_t bytes_ = 0;
};

}  // namespace parsimony::onnx_io
