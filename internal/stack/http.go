package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// probeTimeout bounds one question to a server that may be starting.
const probeTimeout = 2 * time.Second

// answerLimit bounds what is read of an answer; the largest, RabbitMQ's overview, has some 20 KiB.
const answerLimit = 1 << 20

var (
	errAnswer   = errors.New("unexpected answer")
	errNotFound = errors.New("no such address")
)

// getJSON asks once, over a connection of its own, and decodes the answer. The address may carry a login.
func getJSON(ctx context.Context, address string, into any) error {
	body, err := get(ctx, address)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// get asks once and returns the body of an answer 200.
func get(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusOK:
		return body, nil
	case http.StatusNotFound:
		return nil, errNotFound
	default:
		return nil, fmt.Errorf("%w: %s", errAnswer, response.Status)
	}
}
