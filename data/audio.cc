// Audio files, split into windows.
#include <sndfile.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "parsimony/base/files.h"
#include "parsimony/base/parse.h"
#include "parsimony/data/data_file.h"
#include "parsimony/data/errors.h"
#include "parsimony/data/formats_impl.h"

namespace parsimony {
namespace {

ModelError damaged_sound(std::string_view file, std::string_view why) {
  return ModelError(file, ": cannot be decoded as audio: ", why);
}

constexpr std::array<std::string_view, 4> kSoundEndings = {".wav", ".flac", ".ogg", ".aiff"};

/// An open audio file.
class Sound {
 public:
  explicit Sound(const std::string& path)
      : path_(path), file_(sf_open(path.c_str(), SFM_READ, &info_)) {
    if (file_ == nullptr) throw damaged_sound(path, sf_strerror(nullptr));
  }
  ~Sound() { sf_close(file_); }
  Sound(const Sound&) = delete;
  Sound& operator=(const Sound&) = delete;

  int64_t frames() const { return info_.frames; }
  int rate() const { return info_.samplerate; }

  /// Reads the mean of the channels.
  void read(int64_t first, int64_t count, float* out) {
    std::vector<float> frames(static_cast<size_t>(count * info_.channels));
    const bool there = sf_seek(file_, first, SEEK_SET) == first;
    if (!there || sf_readf_float(file_, frames.data(), count) != count) {
      throw damaged_sound(path_, sf_strerror(file_));
    }
    for (int64_t i = 0; i < count; ++i) {
      float sum = 0;
      for (int c = 0; c < info_.channels; ++c) sum += frames[i * info_.channels + c];
      out[i] = sum / static_cast<float>(info_.channels);
    }
  }

 private:
  const std::string& path_;
  SF_INFO info_ = {};
  SNDFILE* file_;
};

/// Parses "DIR,rate=16000,frames=512"; names may contain commas.
struct AudioPlace {
  std::string path;
  std::optional<int64_t> rate;
  std::optional<int64_t> frames;

  explicit AudioPlace(std::string text) : path(std::move(text)) {
    while (take("rate=", rate) || take("frames=", frames)) {
    }
  }

 private:
  bool take(std::string_view name, std::optional<int64_t>& number) {
    const size_t at = path.rfind(',');
    if (at == std::string::npos) return false;
    const std::string_view word = std::string_view(path).substr(at + 1);
    if (!word.starts_with(name)) return false;
    number = number_of<int64_t>(word.substr(name.size()));
    if (number.value_or(0) < 1) {
      throw ConfigError("audio: ", in_quotes(word), ": expected rate=N or frames=N, with N from 1");
    }
    path.resize(at);
    return true;
  }
};

class Audio final : public InputSource {
 public:
  Audio(const AudioPlace& place, const Value& input)
      : window_(window_of(input, place.frames, "audio:DIR,frames=N")) {
    const std::vector<std::string> files = files_at(place.path, kSoundEndings);
    if (files.empty()) throw errors::no_files_below(place.path, ".wav, .flac, .ogg or .aiff");
    for (const std::string& path : files) {
      const Sound sound(path);
      if (place.rate && sound.rate() != *place.rate) {
        throw ModelError(path, " has ", sound.rate(), " samples per second, expected ", *place.rate,
                         "; resample it");
      }
      files_.push_back({path, sound.frames() / window_.back()});
      samples_ += files_.back().second;
    }
    if (samples_ == 0) throw too_short(place.path, 0, window_.back());
  }

  int64_t samples() const override { return samples_; }

  TensorBytes rows(int64_t first, int64_t count) const override {
    TensorBytes result = empty_rows(DType::kFloat32, window_, count);
    auto* out = reinterpret_cast<float*>(result.bytes.data());
    int64_t begin = 0;  // of the file's windows
    for (const auto& [path, windows] : files_) {
      const int64_t from = std::max(first, begin);
      const int64_t to = std::min(first + count, begin + windows);
      if (from < to) {
        const int64_t values = (to - from) * window_.back();
        Sound(path).read((from - begin) * window_.back(), values, out);
        out += values;
      }
      begin += windows;
    }
    return result;
  }

 private:
  Shape window_;
  std::vector<std::pair<std::string, int64_t>> files_;  ///< and how many windows they have
  int64_t samples_ = 0;
};

}  // namespace

std::unique_ptr<InputSource> open_audio(const std::string& place, const Value& input,
                                        std::string_view) {
  return std::make_unique<Audio>(AudioPlace(place), input);
}

}  // namespace parsimony
