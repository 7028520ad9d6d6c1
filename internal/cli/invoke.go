package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// invokeFlags describe a call.
type invokeFlags struct {
	file, path, method string
	headers            []string
	timeout            time.Duration
	verbose            bool
	// gateway is the URL of the gateway, or empty: that of the Windlass.
	gateway string
}

// invoker calls functions.
type invoker struct{ *finder }

func (i *invoker) invokeCommand() *cobra.Command {
	var flags invokeFlags
	cmd := &cobra.Command{
		Use:        "invoke NAME [BODY | -f FILE|-] [-X METHOD] [-H 'KEY: VALUE'] [--path PATH]",
		SuggestFor: []string{"call"},
		Short:      "Call a function and print its answer",
		Long: `Call a function through the gateway and print the body of its answer.

The body is the argument BODY, a file, or what is piped in; -X GET reads nothing
from a pipe. Without -X the method is POST if there is a body, and GET if not.
The Content-Type is application/json if the body is JSON, and else text/plain or
application/octet-stream; -H overrides it.

The gateway is --gateway or, for a cluster, $WINDLASS_GATEWAY. Without them,
calls go through the cluster's API server. Where API keys are required, invoke
sends $WINDLASS_KEY. Without it, who runs windlass up --auth needs no key.

Errors of Windlass itself, such as that no instance has started, go to the
standard error.`,
		Example: `  windlass invoke hello
  windlass invoke greet '{"name": "Ada"}'
  windlass invoke resize -f photo.jpg --path '/small?width=200' > small.jpg`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 2:
				return usagef("%d arguments were given where NAME and BODY belong; quote the body, for example '{\"name\": \"Ada\"}'", len(args))
			case len(args) == 0:
				return oneName(nil, args)
			}
			return nil
		},
		ValidArgsFunction: i.completeNames,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			key, err := i.key(args[0])
			if err != nil {
				return err
			}
			if flags.gateway != "" {
				if err := checkGateway(flags.gateway); err != nil {
					return err
				}
			}
			if cmd.Flags().Changed("timeout") && flags.timeout <= 0 {
				return usagef("--timeout=%s must be more than 0; leave it out for no limit", flags.timeout)
			}
			return i.invoke(cmd.Context(), key, flags, args[1:])
		}),
	}
	cmd.Flags().StringVarP(&flags.file, "filename", "f", "", "`file` with the body, or - for the standard input")
	cmd.Flags().StringVar(&flags.path, "path", "", "`path` and query after the function's URL, such as /items?id=1")
	cmd.Flags().StringVarP(&flags.method, "request", "X", "", "HTTP `method`")
	cmd.Flags().StringArrayVarP(&flags.headers, "header", "H", nil, "request header, as `'KEY: VALUE'`; repeatable")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", 0, "longest `time` that this command waits (default: no limit; the function's own timeout applies)")
	cmd.Flags().BoolVarP(&flags.verbose, "verbose", "v", false, "print the status and Windlass's headers to the standard error")
	cmd.Flags().StringVar(&flags.gateway, "gateway", "", "`URL` of the gateway, such as http://127.0.0.1:8080")
	cmd.Flags().StringVar(&i.flags.windlassNamespace, "windlass-namespace", "", "`namespace` that Windlass runs in (default: windlass finds it)")
	return cmd
}

// body is the request's body, nil if there is none.
func (i *invoker) body(ctx context.Context, args []string, flags invokeFlags) ([]byte, error) {
	switch {
	case len(args) > 0 && flags.file != "":
		return nil, usagef("BODY and -f exclude each other; remove one of the two")
	case len(args) > 0:
		return []byte(args[0]), nil
	case flags.file != "" && flags.file != "-":
		body, err := os.ReadFile(flags.file)
		if err != nil {
			return nil, inputError(fmt.Errorf("cannot read the body: %w; check the path and its rights", err))
		}
		return body, nil
	case flags.file == "-" || (flags.method != http.MethodGet && flags.method != http.MethodHead && piped(i.In)):
		body, err := readAll(ctx, i.In)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return nil, fmt.Errorf("the function was not called: the standard input was not closed within %s; if there is no body, write -X GET or </dev/null", flags.timeout)
		case err != nil:
			return nil, fmt.Errorf("cannot read the standard input: %w", err)
		}
		if len(body) == 0 && flags.file == "" {
			return nil, nil
		}
		return body, nil
	}
	return nil, nil
}

// readAll reads to the end, or until ctx ends. A read that waits cannot be cut off: it ends with the
// process, or when the other side closes.
func readAll(ctx context.Context, from io.Reader) ([]byte, error) {
	var body []byte
	read := make(chan error, 1)
	go func() {
		var err error
		body, err = io.ReadAll(from)
		read <- err
	}()
	select {
	case err := <-read:
		return body, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// piped tells whether someone has put data on the standard input: a pipe or a
// file, not a terminal, nor a socket that a remote shell keeps open.
func piped(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return stdin != nil
	}
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&fs.ModeNamedPipe != 0)
}

func (i *invoker) invoke(ctx context.Context, key invocation.FunctionKey, flags invokeFlags, args []string) error {
	if flags.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, flags.timeout)
		defer cancel()
	}
	body, err := i.body(ctx, args, flags)
	if err != nil {
		return err
	}
	// Report wrong usage before any request to Windlass.
	if _, err := newRequest("http://gateway", flags, body); err != nil {
		return err
	}
	key, way, err := i.findRoute(ctx, key, flags.gateway)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("function %s was not called: %w", key, err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = way.close() }()
	request, err := newRequest(way.url, flags, body)
	if err != nil {
		return err
	}
	if shown := cmp.Or(i.getenv(keyVariable), way.key); shown != "" && request.Header.Get(invocation.HeaderKey) == "" {
		request.Header.Set(invocation.HeaderKey, shown)
	}
	return i.exchange(ctx, key, request, flags, way)
}

// findRoute completes a function's key, and returns the way to it.
func (i *invoker) findRoute(ctx context.Context, key invocation.FunctionKey, gateway string) (invocation.FunctionKey, *route, error) {
	var otherwise *target
	if gateway != "" {
		// Who names the gateway needs nothing else.
		otherwise = &target{namespace: v1alpha1.DefaultNamespace}
	}
	t, err := i.targetOr(ctx, otherwise)
	if err != nil {
		return key, nil, err
	}
	if err := t.clusterOnly("windlass-namespace", i.flags.windlassNamespace != ""); err != nil {
		return key, nil, err
	}
	key = t.key(key)
	way, err := i.route(ctx, t, key, gateway)
	return key, way, err
}

// keyVariable of the environment is an API key to show to the gateway. A flag
// would show it to everybody who may list processes.
const keyVariable = "WINDLASS_KEY"

// route is the way to a function: through the gateway that was named, or that
// of the target.
func (i *invoker) route(ctx context.Context, t *target, key invocation.FunctionKey, gateway string) (*route, error) {
	if gateway == "" && t.inCluster() {
		var err error
		if gateway, err = i.configuredGateway(); err != nil {
			return nil, err
		}
	}
	if gateway != "" {
		return &route{url: gatewayURL(gateway, key), hint: "see that it runs and that this is its URL", close: func() error { return nil }}, nil
	}
	fn, err := t.Get(ctx, key)
	if err != nil {
		return nil, i.explainNotFound(ctx, t, key, err)
	}
	return t.Route(ctx, fn)
}

// newRequest is the request to the function at a URL.
func newRequest(functionURL string, flags invokeFlags, body []byte) (*http.Request, error) {
	if flags.path != "" && !strings.HasPrefix(flags.path, "/") {
		return nil, usagef("--path %q must begin with a slash; write --path /%s", flags.path, flags.path)
	}
	if strings.Contains(flags.path, "#") {
		return nil, usagef("--path %q has a #, and what follows it is never sent; write %%23 instead", flags.path)
	}
	if _, query, _ := strings.Cut(flags.path, "?"); strings.Contains(query, " ") {
		return nil, usagef("--path %q has a space in its query; write %%20 or + instead", flags.path)
	}
	method := flags.method
	switch {
	case method == "" && body != nil:
		method = http.MethodPost
	case method == "":
		method = http.MethodGet
	}
	request, err := http.NewRequest(method, functionURL+flags.path, nil)
	if err != nil {
		return nil, usagef("this is no HTTP request: %w; correct -X or --path", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", contentType(body))
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	for _, header := range flags.headers {
		name, value, ok := strings.Cut(header, ":")
		name = textproto.TrimString(name)
		if !ok || name == "" {
			return nil, usagef("-H %q is not a header; write for example -H 'Accept: text/plain'", header)
		}
		value = textproto.TrimString(value)
		if strings.EqualFold(name, "Host") {
			request.Host = value
			continue
		}
		if strings.EqualFold(name, "Content-Type") {
			request.Header.Del(name)
		}
		request.Header.Add(name, value)
	}
	return request, nil
}

func contentType(body []byte) string {
	switch {
	case json.Valid(body):
		return "application/json"
	case utf8.Valid(body):
		return "text/plain; charset=utf-8"
	default:
		return "application/octet-stream"
	}
}
