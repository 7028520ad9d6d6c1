// Command coldstart measures the stages of cold starts in a cluster that does
// nothing else, from the HTTP request to its answer. The image must be there.
//
//	go run ./test/coldstart --kubeconfig K [--gateway URL] [--runs 20] [--image IMAGE]
//
// Each run makes a Function of its own, calls it once, and deletes it. It prints
// lines name=value, in milliseconds; the stages of a run are in order and add up
// to its total:
//
//   - decide: from the request until the scheduler ordered the instance, which is
//     the pod's annotation windlass.dev/decided (nanoseconds).
//   - api_create: until a watch of ours has shown the pod (nanoseconds).
//   - bind: 0, because Windlass itself writes spec.nodeName.
//   - sandbox: until the first process of the pod's shim, which holds its network,
//     has started: kubelet, volumes, network (start times in /proc, 10 ms).
//   - containers: until the later of agent and function has started (10 ms).
//   - ready: until the scheduler has logged that the instance asks for work: the
//     function's own start, and how soon the agent notices (10 ms).
//   - claim: until the gateway has granted the call to the instance, which the
//     answer's header X-Windlass-Queue-Ms says (1 ms).
//   - execution: the answer's header X-Windlass-Duration-Ms.
//   - return: until the client has the answer.
//
// agent_hello runs beside them: from the start of the agent until the scheduler
// has logged that it joined (10 ms). What cannot be observed, such as processes
// on other machines, is reported as unknown, and so is what depends on it.
//
// All clocks must agree: the client's, the gateways', and the nodes'. In a cluster
// on one machine there is only one.
package main
