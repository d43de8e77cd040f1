package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// containerEvent is one line of `docker compose events --json`.
type containerEvent struct {
	Action     string            `json:"action"`
	Service    string            `json:"service"`
	Attributes map[string]string `json:"attributes"`
}

// errContainerEnded is how a container ends.
var errContainerEnded = errors.New("its container ended")

// Deaths implements Control. The engine is the one that tells; where it does not, nothing is heard.
func (c *Compose) Deaths(ctx context.Context) <-chan Death {
	heard := make(chan Death, deathBuffer)
	stream, err := c.engine.follow(ctx, c.arguments(append([]string{"events", "--json"}, c.services...)...)...)
	if err != nil {
		close(heard)
		return heard
	}
	go func() {
		defer close(heard)
		defer stream.Close()
		c.relayEvents(ctx, stream, heard)
	}()
	return heard
}

// relayEvents passes on the ends of containers that nobody asked for, until the stream ends or cannot be understood.
func (c *Compose) relayEvents(ctx context.Context, stream io.Reader, heard chan<- Death) {
	lines := json.NewDecoder(stream)
	for {
		var one containerEvent
		if lines.Decode(&one) != nil {
			return
		}
		if one.Action == "die" && !c.expected(one.Service) {
			pass(ctx, heard, Death{one.Service, fmt.Errorf("%w: exit status %s", errContainerEnded, one.Attributes["exitCode"])})
		}
	}
}

// expect says whether the end of a service's container is one that was ordered.
func (c *Compose) expect(service string, end bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending == nil {
		c.ending = map[string]bool{}
	}
	c.ending[service] = end
}

func (c *Compose) expected(service string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing || c.ending[service]
}
