// Package contract tests a runtime's image against version v1 of the contract of
// docs/runtimes.md: the paths that it requests, the variables and files that it accepts, its
// reports, and how it ends.
//
// The other side is the product's: variables and files are those of the pods that schedulers
// create (pkg/provisioner/podspec), and the Runtime API is the agent's
// (pkg/podagent/adapter/lambda). Only what the agent never does, such as sending a file outside
// of the code's folder, comes from a fake.
//
// Without flags it tests the entry programs of the built-in runtimes with this machine's
// interpreters; their own tests, in internal/runtimes, go further. "make contract" tests any
// other:
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
//	word      the content of the file word.txt in the working directory
//
// and fails, in the way of its language, if the event has a key fail. If the runtime speaks HTTP,
// too, web.application is a site that answers everything.
package contract
