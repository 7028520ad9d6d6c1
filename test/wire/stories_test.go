package wire

// story is what happens to the world, a line each, with how long after the one before.
type story struct{ name, script string }

var stories = []story{
	// The first call starts an instance, and the second finds it.
	{"cold-start", `
		0s    own scheduler-a
		0s    function f
		1s    call 1 f hello
		2s    answer 1 hi
		1s    call 2 f again
		20ms  answer 2 hi again
		6s    wait`},
	// An instance that waits is handed calls. Bodies and answers come in parts.
	{"idle-pull", `
		0s    own scheduler-a
		0s    function f min=1
		2s    call 1 f one
		20ms  answer 1 eins
		1s    upload 2 f two
		1s    stream 2 zwei
		20s   call 3 f three
		20ms  answer 3 drei
		2s    wait`},
	// An instance that has got no call asks to leave.
	{"idle-leave", `
		0s    own scheduler-a
		0s    function f idle=15s
		0s    call 1 f one
		1s    answer 1 eins
		40s   wait`},
	// All calls but the first go by the loan that it left, until the instance has been idle.
	{"loan", `
		0s    own scheduler-a
		0s    function f min=1
		2s    call 1 f one
		20ms  answer 1 eins
		200ms call 2 f two
		20ms  answer 2 zwei
		200ms call 3 f three
		20ms  answer 3 drei
		12s   wait`},
	// A client hangs up while its call runs, and one while its call waits.
	{"cancel", `
		0s    own scheduler-a
		0s    function f min=1 max=1 onClientDisconnect=Cancel
		2s    call 1 f one
		1s    call 2 f two
		1s    hang-up 2
		1s    hang-up 1
		2s    wait`},
	// A function breaks a call off, and its instance is replaced.
	{"broken-call", `
		0s    own scheduler-a
		0s    function f min=1
		2s    call 1 f one
		1s    break 1
		3s    call 2 f two
		20ms  answer 2 zwei
		1s    wait`},
	// The scheduler does not know the function, and then the rate is reached.
	{"refusal", `
		0s    own scheduler-a
		0s    function f only=gateway
		0s    call 1 f one
		60ms  function f
		2s    answer 1 eins
		0s    function g rate=1 min=1
		2s    call 2 g two
		20ms  answer 2 zwei
		0s    call 3 g three
		1s    wait`},
	// Instances do not start, so calls are refused.
	{"start-fails", `
		0s    own scheduler-a
		0s    function never
		0s    call 1 never one
		3s    wait`},
	// The function gets another revision while a call runs, and is deleted.
	{"drain", `
		0s    own scheduler-a
		0s    function f min=1
		2s    call 1 f one
		1s    change f
		1s    answer 1 eins
		2s    call 2 f two
		20ms  answer 2 zwei
		1s    delete f
		2s    wait`},
	// Another scheduler becomes the owner while one call runs and one waits.
	{"take-over", `
		0s    own scheduler-a
		0s    function f min=1 max=1
		2s    call 1 f one
		1s    call 2 f two
		1s    own scheduler-b
		1s    answer 1 eins
		1s    answer 2 zwei
		2s    call 3 f three
		20ms  answer 3 drei
		2s    wait`},
	// A spare instance of a warm pool becomes a function's.
	{"warm-pool", `
		0s    own scheduler-a
		0s    runtime python3.13
		0s    function f runtime=python3.13
		5s    call 1 f one
		1s    answer 1 eins
		1s    wait`},
	// What is observed of functions and of warm pools is told to the controller.
	{"watch", `
		0s    own scheduler-a
		0s    runtime python3.13
		0s    function g runtime=python3.13
		0s    function f min=1
		1s    watch scheduler-a
		2s    call 1 f one
		2s    answer 1 eins
		2s    function never
		0s    call 2 never two
		3s    own scheduler-b
		2s    wait`},
	// Schedulers say that they are there, and who owns what to those who cannot read it.
	{"heartbeats", `
		0s    own scheduler-a
		0s    peers
		3s    drain scheduler-b
		1s    wait`},
}
