package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lambdaTakes is how long an event takes.
const lambdaTakes = 60 * time.Millisecond

// lambda answers events of the AWS Lambda Runtime API, until that fails. It writes no
// run log.
func lambda(api string) error {
	if os.Getenv("WINDLASS_SPARE") != "" {
		// Code and environment of the function are of no use here.
		if _, err := ask(http.MethodGet, api+"/windlass/v1/assignment", ""); err != nil {
			return err
		}
	}
	const events = "/2018-06-01/runtime/invocation/"
	for {
		id, err := ask(http.MethodGet, api+events+"next", "")
		if err != nil {
			return err
		}
		time.Sleep(lambdaTakes)
		if _, err := ask(http.MethodPost, api+events+id+"/response", `"done"`); err != nil {
			return err
		}
	}
}

// ask makes a request and returns the id of the event that was answered with.
func ask(method, url, body string) (id string, err error) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	// The agent may have started later.
	for tries := 0; errors.Is(err, unix.ECONNREFUSED) && tries < 100; tries++ {
		time.Sleep(100 * time.Millisecond)
		request.Body, _ = request.GetBody()
		answer, err = http.DefaultClient.Do(request)
	}
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return "", err
	}
	if answer.StatusCode/100 != 2 {
		return "", fmt.Errorf("%s %s: %s", method, url, answer.Status)
	}
	return answer.Header.Get("Lambda-Runtime-Aws-Request-Id"), nil
}
