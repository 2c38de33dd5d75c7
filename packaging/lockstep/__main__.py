from lockstep.command import main

main()
