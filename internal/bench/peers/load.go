package peers

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/windlass-dev/windlass/internal/loadgen"
)

// Order is a line that the load reads: first a drive, whose connections it opens, and then an
// order without one, upon which it runs.
type Order struct {
	Drive *loadgen.Drive `json:"drive,omitempty"`
}

// Reply is the line that answers an order.
type Reply struct {
	Driven *loadgen.Driven `json:"driven,omitempty"`
	Err    string          `json:"err,omitempty"`
}

// runLoad carries out orders until there are no more.
func runLoad(ctx context.Context, in io.Reader, out io.Writer) error {
	orders, replies := json.NewDecoder(in), json.NewEncoder(out)
	var driver *loadgen.Driver
	for {
		var order Order
		if err := orders.Decode(&order); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var reply Reply
		var err error
		switch {
		case order.Drive != nil:
			driver, err = loadgen.Connect(ctx, *order.Drive)
		case driver != nil:
			driven := driver.Run(ctx)
			reply.Driven = &driven
			driver.Close()
			driver = nil
		default:
			err = errors.New("there is nothing to run: order a drive first")
		}
		if err != nil {
			reply.Err = err.Error()
		}
		if err := replies.Encode(reply); err != nil {
			return err
		}
	}
}
