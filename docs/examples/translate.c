/* Translates the lines of standard input with a model exported for the edge, one at a time.
 *   cc -I SOURCE/src translate.c liblockstep-translate.a -lstdc++ -lm -lpthread -o translate
 *   ./translate MODEL < lines
 * SOURCE is lockstep's repository (the header is src/edge/translate.h), MODEL what
 * `lockstep export RUN --format edge --out MODEL` wrote. */
#include <stdio.h>
#include <string.h>

#include "edge/translate.h"

static int fail(char *error) {
  fprintf(stderr, "error: %s\n", error);
  lockstep_free(error);
  return 1;
}

int main(int argc, char **argv) {
  const char *const settings[] = {"beam_size=4"};
  const lockstep_options options = {1, 1, settings, 1}; /* one thread, one translation */
  char line[4096], *error = NULL;
  lockstep_translator *translator;
  if (argc != 2) return fputs("usage: translate MODEL < lines\n", stderr), 2;
  translator = lockstep_open(argv[1], &options, &error);
  if (translator == NULL) return fail(error);
  while (fgets(line, sizeof line, stdin) != NULL) {
    const char *text = line;
    lockstep_translations *found;
    line[strcspn(line, "\r\n")] = '\0';
    found = lockstep_translate(translator, &text, 1, &error);
    if (found == NULL) return fail(error);
    puts(lockstep_text(found, 0, 0));
    lockstep_free_translations(found);
  }
  lockstep_close(translator);
  return 0;
}
