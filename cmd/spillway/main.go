// Command spillway is a load and backpressure benchmark for reliable messaging on RabbitMQ and PostgreSQL.
package main

import (
	"context"
	"os"

	"spillway/internal/cli"
	"spillway/internal/crew"
	"spillway/internal/stack"
)

func main() {
	if stack.IsChild() { // this process was started as the first process of a server's namespace
		os.Exit(stack.RunChild())
	}
	if crew.IsChild() { // as workers of another spillway
		os.Exit(crew.RunChild())
	}
	ctx, stop := cli.Signals(context.Background())
	code := cli.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
