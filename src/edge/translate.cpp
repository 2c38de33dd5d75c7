#include "edge/translate.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "edge/edge_translator.h"

struct lockstep_translator {
  lockstep::EdgeTranslator translator;
};

struct lockstep_translations {
  std::vector<std::vector<lockstep::EdgeTranslator::Translation>> lines;
};

namespace lockstep {
namespace {

// Returns what f() returns, or null after an exception, whose text goes to *error.
template <class F>
auto null_on_error(char** error, const F& f) -> decltype(f()) {
  auto tell = [&](const std::string& text) {
    if (error != nullptr) *error = ::strdup(text.c_str());
  };
  try {
    return f();
  } catch (const Error& e) {
    tell(e.describe());
  } catch (const std::exception& e) {
    tell(e.what());
  }
  return nullptr;
}

EdgeTranslator::Options options_of(const lockstep_options* given) {
  EdgeTranslator::Options options;
  if (given == nullptr) return options;
  options.threads = given->threads;
  options.n_best = given->n_best == 0 ? 1 : given->n_best;
  for (std::size_t i = 0; i < given->settings_count; ++i) {
    options.settings.emplace_back(given->settings[i]);
  }
  return options;
}

const EdgeTranslator::Translation* find(const lockstep_translations* translations, std::size_t line,
                                        std::size_t rank) {
  if (rank >= lockstep_count(translations, line)) return nullptr;
  return &translations->lines[line][rank];
}

}  // namespace
}  // namespace lockstep

using lockstep::null_on_error;

lockstep_translator* lockstep_open(const char* folder, const lockstep_options* options,
                                   char** error) {
  return null_on_error(error, [&] {
    return new lockstep_translator{{folder, lockstep::options_of(options)}};
  });
}

void lockstep_close(lockstep_translator* translator) { delete translator; }

lockstep_translations* lockstep_translate(const lockstep_translator* translator,
                                          const char* const* lines, size_t count, char** error) {
  return null_on_error(error, [&] {
    const std::vector<std::string> texts(lines, lines + count);
    return new lockstep_translations{translator->translator.translate(texts)};
  });
}

void lockstep_free_translations(lockstep_translations* translations) { delete translations; }

size_t lockstep_count(const lockstep_translations* translations, size_t line) {
  return line < translations->lines.size() ? translations->lines[line].size() : 0;
}

const char* lockstep_text(const lockstep_translations* translations, size_t line, size_t rank) {
  const auto* found = lockstep::find(translations, line, rank);
  return found == nullptr ? nullptr : found->text.c_str();
}

double lockstep_score(const lockstep_translations* translations, size_t line, size_t rank) {
  const auto* found = lockstep::find(translations, line, rank);
  return found == nullptr ? 0 : found->score;
}

void lockstep_free(char* error) { std::free(error); }

const char* lockstep_version(void) { return LOCKSTEP_VERSION; }
