// Fetch prints the page at a URL the way a Go program with net/http would:
// fetch URL [USER-AGENT].
package main

import (
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	log.SetFlags(0)
	req, err := http.NewRequest(http.MethodGet, os.Args[1], nil)
	if err != nil {
		log.Fatal(err)
	}
	if len(os.Args) > 2 {
		req.Header.Set("User-Agent", os.Args[2])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		log.Fatalf("%s\n%s", resp.Status, body)
	}
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil {
		log.Fatal(err)
	}
}
