package lambdaenv

import (
	"fmt"
	"strconv"
)

const (
	// Region is the AWS region in the environment, since SDKs refuse to start without one. A
	// function that uses AWS sets AWS_REGION itself.
	Region = "us-east-1"
	// Account is the AWS account id in a function's ARN, in which SDKs
	// expect twelve digits.
	Account = "000000000000"
	// Version is the version in the environment of every function.
	Version = "$LATEST"
)

// Config is what a function's environment depends on.
type Config struct {
	// RuntimeAPI is the address of the adapter's server, host:port.
	RuntimeAPI string
	// Namespace and Function name the function.
	Namespace string
	Function  string
	// Handler is what the runtime client shall load, such as "app.handler".
	// It is empty for a program that is its own handler.
	Handler string
	// TaskRoot is the folder that the handler's code is in; /var/task if
	// empty.
	TaskRoot string
	// MemoryMB is the function's memory in units of 2^20 bytes, at least 1;
	// 128 if it is 0.
	MemoryMB int
	// Concurrency is how many calls the function runs at a time, at least 1.
	Concurrency int
}

// Environ is the environment of the function as NAME=value pairs. Each name
// comes once; pairs that the function's owner wants different go behind it.
func Environ(c Config) []string {
	taskRoot, memory := c.TaskRoot, c.MemoryMB
	if taskRoot == "" {
		taskRoot = "/var/task"
	}
	if memory == 0 {
		memory = 128
	}
	env := []string{
		"AWS_LAMBDA_RUNTIME_API=" + c.RuntimeAPI,
		"LAMBDA_TASK_ROOT=" + taskRoot,
		"LAMBDA_RUNTIME_DIR=/var/runtime",
		"AWS_LAMBDA_FUNCTION_NAME=" + c.Function,
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + strconv.Itoa(memory),
		"AWS_LAMBDA_FUNCTION_VERSION=" + Version,
		// The client for Node.js refuses to start if one of these is empty.
		"AWS_LAMBDA_LOG_GROUP_NAME=/windlass/" + c.Namespace + "/" + c.Function,
		"AWS_LAMBDA_LOG_STREAM_NAME=" + Version,
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"AWS_REGION=" + Region,
		"AWS_DEFAULT_REGION=" + Region,
		"AWS_EXECUTION_ENV=AWS_Lambda_Image",
		"TZ=:UTC",
		// Unlike en_US.UTF-8, every image has it.
		"LANG=C.UTF-8",
	}
	if c.Handler != "" {
		env = append(env, "_HANDLER="+c.Handler)
	}
	// The clients for Python and Node.js go by whether it is set at all.
	if c.Concurrency > 1 {
		env = append(env, "AWS_LAMBDA_MAX_CONCURRENCY="+strconv.Itoa(c.Concurrency),
			// The client for Node.js otherwise starts eight threads for
			// each CPU of the node; one runs any number of calls.
			"AWS_LAMBDA_NODEJS_WORKER_COUNT=1",
			// And its polls otherwise hold the threads that the handler
			// needs for files and names.
			"AWS_LAMBDA_NODEJS_USE_ALTERNATIVE_CLIENT_1=true")
	}
	return env
}

// ARN is the name by which AWS would know the function. Both parts of the name
// are in it because functions of the same name exist in several namespaces.
func ARN(namespace, function string) string {
	return fmt.Sprintf("arn:aws:lambda:%s:%s:function:%s-%s", Region, Account, namespace, function)
}
