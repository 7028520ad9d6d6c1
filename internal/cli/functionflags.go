package cli

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/runtimes"
)

// functionFlags describe a Function on the command line.
type functionFlags struct {
	name, image, command, runtime, handler, code, protocol, class string
	env, envFiles                                                 []string
	timeout, slice                                                v1alpha1.Duration
	port, concurrency, least, most                                int32
}

// describing are the flags that say what a manifest says otherwise.
var describing = []string{"name", "image", "port", "command", "runtime", "handler", "code", "protocol", "env", "env-file", "timeout", "concurrency", "class", "slice", "min", "max"}

func (f *functionFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "`name` of the function, when there is no manifest")
	flags.StringVar(&f.image, "image", "", "container `image` that serves HTTP on $PORT; its arguments follow -- (in a cluster)")
	flags.Int32Var(&f.port, "port", 0, "`number` of the port that an image listens on (default 8080)")
	flags.StringVar(&f.command, "command", "", "`program` that serves HTTP on $PORT, with its arguments; or write it after --")
	flags.StringVar(&f.runtime, "runtime", "", "language `runtime`: "+runtimes.Choice()+"; needs --handler and --code")
	flags.StringVar(&f.handler, "handler", "", "`function` in the code that is called, such as main.handle")
	flags.StringVar(&f.code, "code", "", "`path` of the code: a file or folder; with a command, the folder it starts in")
	flags.StringVar(&f.protocol, "protocol", "", "`protocol` by which the function is called: HTTP or LambdaRuntime")
	flags.StringArrayVar(&f.env, "env", nil, "environment variable, as `KEY=VALUE`; repeatable, the last one of a KEY wins")
	flags.StringArrayVar(&f.envFiles, "env-file", nil, envFileUsage+"; --env overrides it")
	flags.Var((*durationFlag)(&f.timeout), "timeout", "longest `time` that a call may run (default 1m)")
	flags.Int32Var(&f.concurrency, "concurrency", 0, "`number` of calls that one instance runs at a time (default 1)")
	flags.StringVar(&f.class, "class", "", "`class` of the instances on busy nodes: LatencyCritical, Standard or Batch (default Standard)")
	flags.Var((*durationFlag)(&f.slice), "slice", "processor `time` after which a call of class Standard yields (default: the node's)")
	flags.Int32Var(&f.least, "min", 0, "`number` of instances to keep when nothing is called")
	flags.Int32Var(&f.most, "max", 0, "largest `number` of instances (default: what the machine can hold)")
}

// durationFlag is a duration as in manifests. Its zero value means that it was not given.
type durationFlag v1alpha1.Duration

func (d *durationFlag) String() string {
	if d.Duration == 0 {
		return ""
	}
	return v1alpha1.Duration(*d).String()
}

func (d *durationFlag) Set(text string) error {
	read, err := v1alpha1.ParseDuration(text)
	*d = durationFlag(read)
	return err
}

func (*durationFlag) Type() string { return "duration" }

// given are the flags that were given.
func (f *functionFlags) given(cmd *cobra.Command) []string {
	var given []string
	for _, name := range describing {
		if cmd.Flags().Changed(name) {
			given = append(given, name)
		}
	}
	return given
}

// build makes the Function; args is the command behind "--".
func (f *functionFlags) build(cmd *cobra.Command, namespace string, args []string) (*v1alpha1.Function, error) {
	if f.name == "" {
		if len(args) > 0 {
			return nil, usagef("--name is missing: write --name NAME -- %s", typed(args...))
		}
		return nil, usagef("--name is missing: give a manifest with -f, or a function with --name")
	}
	key, err := parseKey(f.name, namespace)
	if err != nil {
		return nil, err
	}
	fn := &v1alpha1.Function{}
	fn.Namespace, fn.Name = key.Namespace, key.Name
	spec := &fn.Spec
	if err := f.setProgram(spec, args); err != nil {
		return nil, err
	}
	if spec.Template.Env, err = f.environment(); err != nil {
		return nil, err
	}
	// A zero that was given would count as left out.
	for _, name := range []string{"timeout", "concurrency", "slice", "max", "port"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed && strings.Trim(flag.Value.String(), "0") == "" {
			return nil, usagef("--%s must be more than 0; leave it out to have the default", name)
		}
	}
	spec.Template.Protocol = protocolNamed(f.protocol)
	spec.Template.Timeout = f.timeout
	spec.Template.Port = f.port
	spec.Template.Concurrency = f.concurrency
	spec.Template.Scheduling = v1alpha1.Scheduling{Class: classNamed(f.class), Slice: f.slice}
	spec.Scaling.MinInstances = f.least
	if cmd.Flags().Changed("max") {
		spec.Scaling.MaxInstances = &f.most
	}
	return fn, nil
}

// setProgram says what runs.
func (f *functionFlags) setProgram(spec *v1alpha1.FunctionSpec, args []string) error {
	code := f.code
	switch {
	case f.image != "":
		return f.setImage(spec, args)
	case f.command != "" && len(args) > 0:
		return usagef("--command and a command behind -- exclude each other; remove one of the two")
	case f.runtime != "" && (f.command != "" || len(args) > 0):
		return usagef("--runtime and a command exclude each other; remove one of the two")
	case f.runtime != "" && f.handler == "":
		return usagef("--runtime needs --handler, the function in the code that is called; write for example --handler main.handle")
	case f.runtime != "" && code == "":
		return usagef("--runtime needs --code, the file or folder with the code; write for example --code .")
	case f.runtime == "" && f.command == "" && len(args) == 0:
		return usagef("function %s has nothing to run: add a command such as -- python3 app.py, or --image, or --runtime, --handler and --code", f.name)
	case f.command != "":
		words, err := splitWords(f.command)
		if err != nil {
			return usagef("--command: %w", err)
		}
		spec.Template.Command = words
	case len(args) == 1 && strings.Contains(args[0], " "):
		if _, err := os.Stat(args[0]); err != nil {
			return usagef("%q looks like a command line in one word: write -- %s", args[0], args[0])
		}
		spec.Template.Command = args
	default:
		spec.Template.Command = args
	}
	if code == "" {
		code = "."
	}
	path, err := filepath.Abs(code)
	if err != nil {
		return err
	}
	spec.Template.RuntimeRef.Name, spec.Template.Handler = v1alpha1.RuntimeName(f.runtime), f.handler
	spec.Template.Code = &v1alpha1.Code{Path: path}
	return nil
}

// setImage says what runs in an image: its own program or another, with args.
func (f *functionFlags) setImage(spec *v1alpha1.FunctionSpec, args []string) error {
	switch {
	case f.runtime != "":
		return usagef("--image and --runtime exclude each other: a runtime brings its own image; remove one of the two")
	case f.code != "":
		return usagef("--image and --code exclude each other: an image holds its own code; remove one of the two")
	case f.command != "":
		words, err := splitWords(f.command)
		if err != nil {
			return usagef("--command: %w", err)
		}
		spec.Template.Command = words
	}
	spec.Template.Image, spec.Template.Handler, spec.Template.Args = f.image, f.handler, args
	return nil
}

func protocolNamed(name string) v1alpha1.Protocol {
	for _, p := range []v1alpha1.Protocol{v1alpha1.ProtocolHTTP, v1alpha1.ProtocolLambdaRuntime} {
		if strings.EqualFold(name, string(p)) {
			return p
		}
	}
	return v1alpha1.Protocol(name)
}

func classNamed(name string) v1alpha1.SchedulingClass {
	for _, c := range []v1alpha1.SchedulingClass{v1alpha1.ClassLatencyCritical, v1alpha1.ClassStandard, v1alpha1.ClassBatch} {
		if strings.EqualFold(name, string(c)) {
			return c
		}
	}
	return v1alpha1.SchedulingClass(name)
}

// environment are the variables of files and flags, in this order.
func (f *functionFlags) environment() ([]v1alpha1.EnvVar, error) {
	env, err := readEnvFiles("--env-file", f.envFiles)
	if err != nil {
		return nil, err
	}
	for _, pair := range f.env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, usagef("--env %q is not KEY=VALUE; write for example --env APP_MODE=test", pair)
		}
		env = append(env, envChange{name: name, value: value})
	}
	return changeEnv(nil, env), nil
}
