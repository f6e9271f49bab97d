"""Prints the pages at URLs as aiohttp gives them when it is set to read the variables."""
import asyncio
import sys
import aiohttp


async def main():
    async with aiohttp.ClientSession(trust_env=True) as session:
        for url in sys.argv[1:]:
            async with session.get(url) as response:
                print("==", url, response.status, await response.text())


asyncio.run(main())
