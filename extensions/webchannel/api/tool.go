package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// callTool calls a tool of an extension for a visitor, and decodes its answer. The owner uses
// and changes everything, anyone else what is theirs and the household's.
func callTool[T any](ctx context.Context, a *api, v door.Visitor, name string, fields any) (answer T, err error) {
	arguments, err := json.Marshal(fields)
	if err != nil {
		return answer, fmt.Errorf("write the arguments of %s: %w", name, err)
	}
	q := &adminv1.CallToolRequest{Name: name, Arguments: arguments}
	if !v.Owner() {
		if v.Account == "" {
			return answer, fmt.Errorf("%w: the account of %s is not known", contract.ErrDenied, v.Name)
		}
		q.Person, q.Household = v.Account, true
	}
	result, err := a.Manage.CallTool(ctx, q)
	switch {
	case errors.Is(err, contract.ErrNotFound):
		extension, _, _ := strings.Cut(name, "/")
		return answer, problem(http.StatusServiceUnavailable, typeDown,
			fmt.Sprintf("the extension %s is not running; `switchboard extensions list` says why", extension))
	case err != nil:
		return answer, err
	case result.GetIsError():
		return answer, problem(http.StatusUnprocessableEntity, "", result.GetContent())
	}
	if err := json.Unmarshal([]byte(result.GetContent()), &answer); err != nil {
		return answer, fmt.Errorf("read the answer of %s: %w", name, err)
	}
	return answer, nil
}

// missing is the problem of an id that does not exist, or is not the visitor's.
func missing(what, id string) error {
	return problem(http.StatusNotFound, "", fmt.Sprintf("there is no %s %q", what, id))
}
