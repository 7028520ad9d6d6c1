// Package contract checks a runtime's image against the contract of docs/runtimes.md, in
// its version v1: the paths that it asks, the variables and files that it takes, what it reports, and how
// it ends.
//
// The other side is the product's: variables and files are those of the pods that
// schedulers make (pkg/provisioner/podspec), and the Runtime API is the agent's
// (pkg/podagent/adapter/lambda). Only what the agent never does, such as handing over a file
// outside of the folder of the code, comes from a stand-in.
//
// Without flags it checks the entry programs of the runtimes that Windlass brings along, with this
// machine's interpreters; their own tests, in internal/runtimes, go further. "make contract" checks
// any other:
//
//	make contract COMMAND='docker run --rm --network host --volume {task}:/var/task:ro --workdir /var/task {env} IMAGE' CODE=FOLDER
//
// {task} becomes the folder of the code, and {env} the variables as --env NAME=VALUE. Without them the
// command runs on this machine, in that folder and with those variables. FOLDER has the
// handler contract.handler, in the language of the runtime. It answers with a JSON object of
//
//	event     the event
//	greeting  the variable GREETING, or null
//	spare     the variable WINDLASS_SPARE, or null
//	word      what stands in the file word.txt of the working directory
//
// and fails, in the way of its language, if the event has a key fail. If the runtime speaks HTTP,
// too, web.application is a site that answers everything.
package contract
