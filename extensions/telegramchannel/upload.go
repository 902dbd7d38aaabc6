package telegramchannel

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/go-telegram/bot"

	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// upload makes a call with files and decodes its result.
func (a *activation) upload(
	ctx context.Context, method string, fields map[string]string, files []httpcall.FormFile, into any,
) error {
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.api.url+"/bot"+a.api.token+"/"+method, http.NoBody)
	if err != nil {
		return &httpcall.Error{Err: err}
	}
	if err := (&httpcall.Form{Fields: fields, Files: files, From: a.kernel}).Attach(req); err != nil {
		return &httpcall.Error{Err: err}
	}
	resp, err := a.api.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	result, err := decodeAnswer(method, resp)
	if err == nil {
		err = json.Unmarshal(result, into)
	}
	return err
}

// decodeAnswer returns the result of a call, or an error as those of the library.
func decodeAnswer(method string, resp *http.Response) (json.RawMessage, error) {
	var answer struct {
		OK          bool            `json:"ok"`
		Result      json.RawMessage `json:"result"`
		Description string          `json:"description"`
		Code        int             `json:"error_code"`
		Parameters  struct {
			RetryAfter int `json:"retry_after"`
			MigrateTo  int `json:"migrate_to_chat_id"`
		} `json:"parameters"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, &httpcall.Error{Sent: true, Err: fmt.Errorf("decode response of %s: %w", method, err)}
	}
	if answer.OK {
		return answer.Result, nil
	}
	if answer.Parameters.MigrateTo != 0 {
		return nil, &bot.MigrateError{Message: answer.Description, MigrateToChatID: answer.Parameters.MigrateTo}
	}
	for code, kind := range map[int]error{
		http.StatusUnauthorized: bot.ErrorUnauthorized, http.StatusNotFound: bot.ErrorNotFound,
		http.StatusConflict: bot.ErrorConflict, http.StatusForbidden: bot.ErrorForbidden,
	} {
		if answer.Code == code {
			return nil, fmt.Errorf("%w, %s", kind, answer.Description)
		}
	}
	if answer.Code == http.StatusTooManyRequests {
		return nil, &bot.TooManyRequestsError{Message: answer.Description, RetryAfter: answer.Parameters.RetryAfter}
	}
	return nil, fmt.Errorf("%w, %s", bot.ErrorBadRequest, answer.Description)
}
