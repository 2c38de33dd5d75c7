#include "commands/hosts/notify.h"

#include "launch/ending/notifier.h"

namespace lockstep {

int notify(const Arguments& arguments) {
  CommandLine app("Posts a notice that standard input has, as launch --notify writes it.",
                  "lockstep notify");
  if (app.parse(arguments)) post_notice();
  return kExitOk;
}

}  // namespace lockstep
