package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	// defaultCheckTimeout is how long check tries by default, and checkInterval how long
	// it waits between two tries.
	defaultCheckTimeout = 10 * time.Second
	checkInterval       = 250 * time.Millisecond
)

// prober asks gateways whether they answer.
type prober struct{ *finder }

func (p *prober) checkCommand() *cobra.Command {
	var gateway string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "check [--gateway URL] [--timeout TIME]",
		Short: "Check that a gateway answers",
		Long: `Check that a gateway answers, without calling a function. The gateway is
--gateway, $WINDLASS_GATEWAY, that of the settings, or that of the Windlass on this
machine.`,
		Example: `  windlass check --gateway http://127.0.0.1:8080`,
		Args:    noArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if timeout <= 0 {
				return usagef("--timeout %s must be more than 0; write for example --timeout 10s", timeout)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			gateway, err := p.choose(ctx, gateway)
			if err != nil {
				return err
			}
			return p.check(ctx, strings.TrimRight(gateway, "/"))
		}),
	}
	cmd.Flags().StringVar(&gateway, "gateway", "", "`URL` of the gateway, such as http://127.0.0.1:8080")
	cmd.Flags().DurationVar(&timeout, "timeout", defaultCheckTimeout, "longest `time` to try")
	return cmd
}

// choose is the gateway of the flag, of the environment, of the settings or of this machine.
// --data-dir means this machine, and --context another one.
func (p *prober) choose(ctx context.Context, gateway string) (_ string, err error) {
	if gateway == "" && p.dataDir == "" {
		gateway, err = p.configuredGateway()
	}
	if gateway == "" && err == nil && p.flags.context == "" && p.flags.kubeconfig == "" {
		gateway, err = p.localGateway(ctx)
	}
	switch {
	case err != nil:
		return "", err
	case gateway == "" && p.dataDir != "":
		return "", fmt.Errorf("no Windlass runs with the data folder %s: start one with windlass up, or name a gateway with --gateway", p.dataDir)
	case gateway == "":
		return "", usagef("which gateway? name its URL with --gateway or $%s", gatewayVariable)
	}
	return gateway, checkGateway(gateway)
}

// check tries until the gateway answers or ctx ends.
func (p *prober) check(ctx context.Context, gateway string) error {
	var last error
	for {
		began := p.now()
		err := p.probe(ctx, gateway)
		if err == nil {
			fmt.Fprintf(p.Out, "the gateway at %s answers, in %s\n", gateway, p.now().Sub(began).Round(100*time.Microsecond))
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the gateway at %s does not answer: %w; see that it runs and that this is its URL", gateway, last)
		case <-time.After(checkInterval):
		}
	}
}

// probe sends a request that runs no function, and recognizes a gateway by its refusal.
func (p *prober) probe(ctx context.Context, gateway string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway+"/", nil)
	if err != nil {
		return err
	}
	response, err := (&http.Transport{DisableKeepAlives: true, Proxy: p.proxy}).RoundTrip(request)
	if err != nil {
		return withoutRequest(err)
	}
	defer response.Body.Close()
	if invocation.Executed(response.Header.Get(invocation.HeaderExecuted)) != invocation.ExecutedNo {
		return fmt.Errorf("something else answers %s there", response.Status)
	}
	return nil
}

// withoutRequest takes off what the reader knows: the URL.
func withoutRequest(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
