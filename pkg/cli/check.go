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

	"github.com/windlass-dev/windlass/pkg/invoke"
)

const (
	// checkTime is how long check tries by default, and checkPause how long
	// it waits between two tries.
	checkTime  = 10 * time.Second
	checkPause = 250 * time.Millisecond
)

func (a *app) checkCommand() *cobra.Command {
	var gateway string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "check --gateway URL [--timeout TIME]",
		Short: "See whether a gateway answers",
		Long: `Ask a gateway for what is no function, until it answers or time is up. Nothing
runs. The gateway is --gateway or $WINDLASS_GATEWAY.`,
		Example: `  windlass check --gateway http://127.0.0.1:8080`,
		Args:    noArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if gateway == "" {
				gateway = a.getenv(gatewayVariable)
			}
			if gateway == "" {
				return usagef("which gateway? name its URL with --gateway or $%s", gatewayVariable)
			}
			if err := checkGateway(gateway); err != nil {
				return err
			}
			if timeout <= 0 {
				return usagef("--timeout %s must be more than 0; write for example --timeout 10s", timeout)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return a.check(ctx, strings.TrimRight(gateway, "/"))
		}),
	}
	cmd.Flags().StringVar(&gateway, "gateway", "", "`URL` of the gateway, such as http://127.0.0.1:8080")
	cmd.Flags().DurationVar(&timeout, "timeout", checkTime, "give up after this time")
	return cmd
}

// gatewayVariable of the environment is the URL of the gateway.
const gatewayVariable = "WINDLASS_GATEWAY"

// checkGateway refuses what is no URL of a gateway.
func checkGateway(gateway string) error {
	u, err := url.Parse(gateway)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" {
		return usagef("the gateway %q is no URL; write for example http://127.0.0.1:8080", gateway)
	}
	return nil
}

// check tries until the gateway answers or ctx ends.
func (a *app) check(ctx context.Context, gateway string) error {
	var last error
	for {
		began := a.now()
		err := ask(ctx, gateway)
		if err == nil {
			fmt.Fprintf(a.Out, "the gateway at %s answers, in %s\n", gateway, a.now().Sub(began).Round(100*time.Microsecond))
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the gateway at %s does not answer: %w; see that it runs and that this is its URL", gateway, last)
		case <-time.After(checkPause):
		}
	}
}

// ask makes a request that runs nothing, and knows a gateway by its refusal.
func ask(ctx context.Context, gateway string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway+"/", nil)
	if err != nil {
		return err
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return withoutRequest(err)
	}
	defer response.Body.Close()
	if invoke.Executed(response.Header.Get(invoke.HeaderExecuted)) != invoke.ExecutedNo {
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
