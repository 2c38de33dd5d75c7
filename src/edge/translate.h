/* Translates lines of text with a model that `lockstep export RUN --format edge --out FOLDER`
 * wrote, in C or C++ and without torch: link liblockstep-translate.a, libstdc++, libm and pthread.
 *
 *   char *error = NULL;
 *   lockstep_translator *t = lockstep_open("model", NULL, &error);
 *   const char *lines[] = {"A man rides a horse."};
 *   lockstep_translations *out = t ? lockstep_translate(t, lines, 1, &error) : NULL;
 *   if (out) puts(lockstep_text(out, 0, 0)); else { fputs(error, stderr); lockstep_free(error); }
 *   lockstep_free_translations(out);
 *   lockstep_close(t);
 *
 * Errors: a function that can fail returns NULL (or another failure said below) and, where `error`
 * is not NULL, sets *error to one message of one or more lines, without a line end; free it with
 * lockstep_free. *error is left alone otherwise. No function ends the process or writes anywhere.
 * Threads: an opened translator never changes. Any number of threads may call lockstep_translate
 * with one translator at a time; they share its threads. lockstep_close waits for nobody. */
#ifndef LOCKSTEP_TRANSLATE_H
#define LOCKSTEP_TRANSLATE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lockstep_translator lockstep_translator;
typedef struct lockstep_translations lockstep_translations;

typedef struct {
  int threads; /* that decode; 0: as many as the process may use */
  int n_best;  /* translations of every line, at most the beam; 0: 1 */
  /* How to search, as words of [decoding] in lockstep's configurations, such as
   * {"beam_size=5", "length_penalty=1"}; what is not here is as the model was exported. */
  const char* const* settings;
  size_t settings_count;
} lockstep_options;

/* Opens a model; options may be NULL. Its files are mapped and must not be changed meanwhile. */
lockstep_translator* lockstep_open(const char* folder, const lockstep_options* options,
                                   char** error);
void lockstep_close(lockstep_translator* translator); /* NULL: nothing */

/* Translates `count` lines of UTF-8 without line ends. An empty line has an empty translation.
 * Lines of one call are decoded together, which is faster, and give what each gives alone. */
lockstep_translations* lockstep_translate(const lockstep_translator* translator,
                                          const char* const* lines, size_t count, char** error);
void lockstep_free_translations(lockstep_translations* translations); /* NULL: nothing */

/* How many translations line `line` has: n_best, or fewer where the search found no more; 0 for a
 * line that was not given. */
size_t lockstep_count(const lockstep_translations* translations, size_t line);
/* Translation `rank` of a line, 0 the best, in UTF-8 (valid until lockstep_free_translations), and
 * its score: log-probability over the length norm. NULL and 0 where there is none. */
const char* lockstep_text(const lockstep_translations* translations, size_t line, size_t rank);
double lockstep_score(const lockstep_translations* translations, size_t line, size_t rank);

void lockstep_free(char* error);    /* NULL: nothing */
const char* lockstep_version(void); /* such as "0.1.0" */

#ifdef __cplusplus
}
#endif
#endif
